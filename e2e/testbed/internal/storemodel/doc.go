// Package storemodel holds no code but a test: the in-memory store that the
// simulation runs on, s3fs/s3test, is held against a real S3 server, versitygw,
// with the same script of calls. The script covers what the sink depends on; it
// uses the SDK directly, one request per call, so that nothing of the product
// stands between a call and its answer.
//
// Every call states the status and error code that S3's documentation gives it.
// Both servers must answer with it and with the same facts: size, ETag, CRC64NVME,
// owner token, order of listings. Where the real server is known to differ, the
// test names the two answers and the reason; a difference that has gone fails the
// test as well, so that the list stays true.
package storemodel
