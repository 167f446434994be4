package retrymode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Answers of real stores, as they come over the wire, and what the real client makes of them. A retryable error is seen as a second attempt.
func TestClassifyRecordedAnswers(t *testing.T) {
	const nginx = "<html>\r\n<head><title>503 Service Temporarily Unavailable</title></head>\r\n<body>\r\n<center><h1>503</h1></center>\r\n</body>\r\n</html>\r\n"
	for _, tt := range []struct {
		name   string
		op     func(context.Context, *s3.Client) error
		status int
		body   string
		want   Class
	}{
		{"S3 SlowDown", put, 503, xmlError("SlowDown"), Throttle},
		{"S3 SlowDown, HEAD", head, 503, "", Throttle},
		{"S3 ServiceUnavailable", get, 503, xmlError("ServiceUnavailable"), Throttle},
		{"MinIO SlowDownRead", get, 503, xmlError("SlowDownRead"), Throttle},
		{"MinIO SlowDownWrite", put, 503, xmlError("SlowDownWrite"), Throttle},
		{"RGW SlowDown without Message", put, 503, `<Error><Code>SlowDown</Code><RequestId>tx0</RequestId></Error>`, Throttle},
		{"Swift 498 as 503, plain text", get, 503, "Slow down", Throttle},
		{"nginx limit_req, HTML", get, 503, nginx, Throttle},
		{"nginx limit_req, HEAD", head, 503, "", Throttle},
		{"empty 503", put, 503, "", Throttle},
		{"503 with half an XML body", put, 503, `<Error><Code>Slo`, Throttle},
		{"429 empty", get, 429, "", Throttle},
		{"429 with a code nobody knows", put, 429, xmlError("Later"), Throttle},
		{"429 HEAD", head, 429, "", Throttle},
		{"509", get, 509, "", Throttle},
		{"400 RequestLimitExceeded", get, 400, xmlError("RequestLimitExceeded"), Throttle},
		{"SlowDown inside a 200", complete, 200, xmlError("SlowDown"), Throttle},
		{"ServiceUnavailable inside a 200", complete, 200, xmlError("ServiceUnavailable"), Throttle},
		{"SlowDownWrite inside a 200", complete, 200, xmlError("SlowDownWrite"), Throttle},

		{"500", put, 500, xmlError("InternalError"), Transient},
		{"500 HEAD", head, 500, "", Transient},
		{"500 on Complete is an answer", complete, 500, xmlError("InternalError"), Transient},
		{"InternalError inside a 200", complete, 200, xmlError("InternalError"), Transient},
		{"502", get, 502, "<html></html>", Transient},
		{"504", get, 504, "", Transient},
		{"504 HEAD", head, 504, "", Transient},
		{"520 of a proxy", get, 520, "", Transient},
		{"400 RequestTimeout", put, 400, xmlError("RequestTimeout"), Transient},
		{"408", put, 408, "", Transient},
		{"409 OperationAborted", complete, 409, xmlError("OperationAborted"), Transient},
		{"OperationAborted inside a 200", complete, 200, xmlError("OperationAborted"), Transient},
		{"409 ConditionalRequestConflict, put", putIfAbsent, 409, xmlError("ConditionalRequestConflict"), Transient},
		{"409 empty, conditional put", putIfAbsent, 409, "", Transient},
		{"400 ExpiredToken", put, 400, xmlError("ExpiredToken"), Transient},
		{"LIST cut in the middle", list, 200, "<ListBucketResult><Name>b</Na", Transient},

		{"409 ConditionalRequestConflict, complete", complete, 409, xmlError("ConditionalRequestConflict"), Ambiguous},
		{"Complete 200, half a body", complete, 200, completed[:100], Ambiguous},
		{"Complete 200, whitespace and half a body", complete, 200, "   <CompleteMul", Ambiguous},
		{"Complete 200, HTML cut in the middle", complete, 200, nginx[:60], Ambiguous},

		{"404 NoSuchKey", get, 404, xmlError("NoSuchKey"), Permanent},
		{"404 HEAD", head, 404, "", Permanent},
		{"404 NoSuchUpload", complete, 404, xmlError("NoSuchUpload"), Permanent},
		{"403", put, 403, xmlError("AccessDenied"), Permanent},
		{"403 HEAD", head, 403, "", Permanent},
		{"403 SignatureDoesNotMatch", put, 403, xmlError("SignatureDoesNotMatch"), Permanent},
		{"403 RequestTimeTooSkewed without a Date", put, 403, xmlError("RequestTimeTooSkewed"), Permanent},
		{"403 HTML", put, 403, "<html></html>", Permanent},
		{"400 BadDigest", put, 400, xmlError("BadDigest"), Permanent},
		{"409 of something else", put, 409, xmlError("InvalidBucketState"), Permanent},
		{"409 empty, plain put", put, 409, "", Permanent},
		{"411", put, 411, xmlError("MissingContentLength"), Permanent},
		{"412", putIfAbsent, 412, xmlError("PreconditionFailed"), Permanent},
		{"416", get, 416, xmlError("InvalidRange"), Permanent},
		{"501", put, 501, xmlError("NotImplemented"), Permanent},
		{"501 HEAD", head, 501, "", Permanent},
		{"507 disk full", put, 507, xmlError("XMinioStorageFull"), Permanent},
		{"301 of another region", get, 301, xmlError("PermanentRedirect"), Permanent},
		{"InvalidPart inside a 200", complete, 200, xmlError("InvalidPart"), Permanent},
		{"NoSuchUpload inside a 200", complete, 200, xmlError("NoSuchUpload"), Permanent},
		{"PreconditionFailed inside a 200", complete, 200, xmlError("PreconditionFailed"), Permanent},
		{"LIST that is no XML", list, 200, "<html><br></html>", Permanent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := always(tt.status, tt.body)
				err := tt.op(t.Context(), newClient(newRetryer(t, standard(1)), w))
				require.Error(t, err)
				if tt.name == "400 ExpiredToken" {
					tt.want = Permanent // the second time in one call
				}
				assert.Equal(t, tt.want, Classify(err), "%v", err)
				want := 1
				if tt.want.Retryable() || tt.name == "400 ExpiredToken" {
					want = 2
				}
				assert.Equal(t, want, w.attempts())
			})
		})
	}
}

func list(ctx context.Context, c *s3.Client) error {
	return drop(c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket}))
}

type stalled struct{}

func (stalled) Error() string   { return "i/o timeout" }
func (stalled) Timeout() bool   { return true }
func (stalled) Temporary() bool { return true }

// What the transport reports when no answer came: any operation, and the writes that must not be repeated blindly.
func TestClassifyLostAnswers(t *testing.T) {
	op := func(name string, err error) error { return &net.OpError{Op: name, Net: "tcp", Err: err} }
	for _, tt := range []struct {
		name            string
		err             error
		anything, write Class
	}{
		{"connection reset", op("read", os.NewSyscallError("read", syscall.ECONNRESET)), Transient, Ambiguous},
		{"broken pipe", op("write", os.NewSyscallError("write", syscall.EPIPE)), Transient, Ambiguous},
		{"closed without an answer", io.EOF, Transient, Ambiguous},
		{"cut", io.ErrUnexpectedEOF, Transient, Ambiguous},
		{"closed under our hands", op("read", net.ErrClosed), Transient, Ambiguous},
		{"no answer in time", stalled{}, Transient, Ambiguous},
		{"no answer in time, in the words of a context", fmt.Errorf("waiting for headers: %w", context.DeadlineExceeded), Transient, Ambiguous},
		{"something new", errBoom, Transient, Ambiguous},
		{"refused", op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), Transient, Transient},
		{"connect timeout", op("dial", stalled{}), Transient, Transient},
		{"no such host", op("dial", &net.DNSError{Err: "no such host", Name: "store.example", IsNotFound: true}), Transient, Transient},
		{"unknown authority", x509.UnknownAuthorityError{}, Permanent, Permanent},
		{"certificate of another host", &tls.CertificateVerificationError{Err: errBoom}, Permanent, Permanent},
		{"certificate of another host, bare", x509.HostnameError{Certificate: new(x509.Certificate), Host: "h"}, Permanent, Permanent},
		{"plain HTTP port", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, Permanent, Permanent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{answer: func(int, *http.Request, []byte) (*http.Response, error) { return nil, tt.err }}
				c := newClient(newRetryer(t, standard(0)), w)
				assert.Equal(t, tt.anything, Classify(uploadPart(t.Context(), c, 1, []byte("x"))))
				assert.Equal(t, tt.anything, Classify(put(t.Context(), c)))
				assert.Equal(t, tt.anything, Classify(get(t.Context(), c)))
				assert.Equal(t, tt.write, Classify(complete(t.Context(), c)))
				assert.Equal(t, tt.write, Classify(putIfAbsent(t.Context(), c)))
			})
		})
	}
}

// An attempt's own timeout, rewrapped so that the SDK does not take it for the caller's.
type attemptTimeout struct{ error }

func (attemptTimeout) CanceledError() bool  { return false }
func (attemptTimeout) RetryableError() bool { return true }
func (e attemptTimeout) Unwrap() error      { return e.error }

func TestClassifyWithoutAnAnswer(t *testing.T) {
	timeout := attemptTimeout{&smithy.CanceledError{Err: context.DeadlineExceeded}}
	nested := func(err error) error {
		return fmt.Errorf("get identity: %w", &smithy.OperationError{ServiceID: "STS", OperationName: "AssumeRole", Err: err})
	}
	for _, tt := range []struct {
		name string
		op   string
		cond bool
		err  error
		want Class
	}{
		{"nothing", opPut, true, nil, 0},
		{"canceled", opPut, true, &smithy.CanceledError{Err: context.Canceled}, Canceled},
		{"bare context error", "GetObject", false, fmt.Errorf("failed to get retry Send token, %w", context.DeadlineExceeded), Canceled},
		{"timeout of one attempt", "GetObject", false, timeout, Transient},
		{"timeout of one attempt to commit", opComplete, false, timeout, Ambiguous},
		{"timeout of one conditional put", opPut, true, timeout, Ambiguous},
		{"bad input", "GetObject", false, &smithy.SerializationError{Err: errors.New("input member Key must not be empty")}, Permanent},
		{"bad address", "GetObject", false, &url.Error{Op: "parse", URL: ":", Err: errors.New("missing protocol scheme")}, Permanent},
		{"unknown", "GetObject", false, errBoom, Permanent},
		{"a code without a status", "GetObject", false, &smithy.GenericAPIError{Code: "SlowDown"}, Throttle},
		{"throttled while fetching credentials", "GetObject", false, nested(&smithy.GenericAPIError{Code: "Throttling"}), Transient},
		{"refused credentials", "GetObject", false, nested(&smithy.GenericAPIError{Code: "AccessDenied"}), Permanent},
		{"nobody to ask for credentials", "GetObject", false, nested(&smithy.CanceledError{Err: context.DeadlineExceeded}), Permanent},
		{"breaker", "GetObject", false, &BreakerOpenError{RetryIn: 1}, Transient},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, ClassifyCall(tt.op, tt.cond, tt.err))
		})
	}
}

func TestClassifyFindsTheOperationInTheError(t *testing.T) {
	lost := attemptTimeout{io.EOF}
	assert.Equal(t, Ambiguous, Classify(&smithy.OperationError{ServiceID: "S3", OperationName: "CompleteMultipartUpload", Err: lost}))
	assert.Equal(t, Transient, Classify(&smithy.OperationError{ServiceID: "S3", OperationName: "UploadPart", Err: lost}))
	assert.Equal(t, Class(0), Classify(nil))
	assert.Zero(t, AttemptsOf(nil))
	assert.Zero(t, AttemptsOf(errBoom))
}

func TestClassNamesAreStable(t *testing.T) {
	text, err := json.Marshal([]Class{0, Permanent, Throttle, Transient, Ambiguous, Canceled, 99})
	require.NoError(t, err)
	assert.JSONEq(t, `["none", "permanent", "throttle", "transient", "ambiguous", "canceled", "Class(99)"]`, string(text))
}
