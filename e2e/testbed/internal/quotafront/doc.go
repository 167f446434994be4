// Package quotafront is an HTTP front for an S3 server that limits the rate of
// requests and closes the connection of what is too much, without an answer. Some
// stores do that instead of saying 503, and a client then has to find out by
// itself that it is too fast.
//
// Without a quota it is a plain relay that makes every request take longer: a
// server on the same machine answers in a millisecond, a store far away does not.
package quotafront
