// Package accesslog counts the requests that the embedded S3 server answered,
// from the access log that the server itself writes. The counts are a witness
// against the client's own: nothing of the client takes part in them.
package accesslog
