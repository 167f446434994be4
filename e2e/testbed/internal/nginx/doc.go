// Package nginx runs nginx as a request-rate quota in front of an S3 server: the
// limit_req module counts requests, and what it refuses is answered with 503 and
// the XML of S3's SlowDown. It is a witness from outside: the quota, the answer
// and the access log are those of a server that knows nothing of this project.
//
// nginx comes from the system; nothing of it is built in.
package nginx
