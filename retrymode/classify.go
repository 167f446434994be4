package retrymode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

// Class says what an error means for the next step. The zero value belongs to a nil error.
type Class int

const (
	// Permanent: sending the same request again gives the same answer.
	Permanent Class = iota + 1
	// Throttle: the store asks for fewer requests. Retried on the throttle base.
	Throttle
	// Transient: the store or the way to it failed for a moment, and sending the request again does no harm.
	Transient
	// Ambiguous: a write that must not be repeated blindly may have been carried out. Not retried; the caller looks, then asks again.
	Ambiguous
	// Canceled: the caller's context ended, before, between or during attempts. A write cancelled in flight may have been carried out.
	Canceled
)

// String returns the name in lower case, "none" for the zero value.
func (c Class) String() string {
	switch c {
	case 0:
		return "none"
	case Permanent:
		return "permanent"
	case Throttle:
		return "throttle"
	case Transient:
		return "transient"
	case Ambiguous:
		return "ambiguous"
	case Canceled:
		return "canceled"
	default:
		return fmt.Sprintf("Class(%d)", int(c))
	}
}

// MarshalText is String.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Retryable reports whether the retryer sends the request again.
func (c Class) Retryable() bool { return c == Throttle || c == Transient }

const (
	opComplete = "CompleteMultipartUpload"
	opPut      = "PutObject"
)

// Classify returns the class of an error returned by an S3 client. An error of a client with [Retryer.Middleware] carries the class that
// the retryer decided on, with everything it knew about the call; for any other error the operation is the one that the error names.
func Classify(err error) Class {
	if ae, ok := errors.AsType[*AttemptError](err); ok {
		if resignable(err) {
			return Transient
		}
		return ae.Class
	}
	if oe, ok := errors.AsType[*smithy.OperationError](err); ok && oe.ServiceID == "S3" {
		return ClassifyCall(oe.OperationName, false, oe.Err)
	}
	return ClassifyCall("", false, err)
}

// ClassifyCall returns the class of one attempt's error. operation is the SDK's name; conditional says that the request carried
// If-Match or If-None-Match. Both matter for writes whose answer was lost:
//
//   - CompleteMultipartUpload and a conditional PutObject become [Ambiguous], as a repetition answers NoSuchUpload or 412 and hides
//     that the first one succeeded. An answer of status 500, 502 or 504 is an answer: such a call is sent again.
//   - Everything else is [Transient]: reads, UploadPart (the same part number is overwritten), AbortMultipartUpload, an unconditional PutObject,
//     CreateMultipartUpload (an upload nobody knows of is left behind).
//
// On a conditional PutObject 412 means look ([Permanent]) and 409 means again ([Transient]); on CompleteMultipartUpload a conditional
// conflict is [Ambiguous].
func ClassifyCall(operation string, conditional bool, err error) Class {
	if err == nil {
		return 0
	}
	if oe, ok := errors.AsType[*smithy.OperationError](err); ok {
		return classifyNested(oe)
	}
	if isCanceled(err) {
		return Canceled
	}
	once := operation == opComplete || operation == opPut && conditional
	status, code := statusOf(err), codeOf(err)
	switch {
	case resignable(err):
		return Transient
	case status == 0 && code == "":
		return classifyUnanswered(once, err)
	case status/100 == 2:
		// The store said yes and the rest of the answer is missing or unreadable.
		if once {
			return Ambiguous
		}
		return retryIf(isBroken(err))
	case isConflict(status, code):
		return classifyConflict(operation, conditional, code)
	default:
		return classifyAnswer(status, code)
	}
}

// classifyAnswer decides by code where the code says it, since a 200 with an error inside arrives here as a 500 and a timeout as a 400; by
// status where it does not.
func classifyAnswer(status int, code string) Class {
	switch {
	case isThrottle(status, code):
		return Throttle
	case isTransientCode(code):
		return Transient
	case isPermanentCode(code):
		return Permanent
	}
	switch status {
	case http.StatusRequestTimeout:
		return Transient
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusInsufficientStorage:
		return Permanent
	}
	return retryIf(status >= 500)
}

func isThrottle(status int, code string) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 509: // 509: bandwidth limit exceeded, not in the registry
		return true
	}
	if _, ok := retry.DefaultThrottleErrorCodes[code]; ok {
		return true
	}
	switch code {
	case "TooManyRequests", "ServiceUnavailable":
		return true
	}
	return strings.HasPrefix(code, "SlowDown") // S3: SlowDown; MinIO: SlowDownRead, SlowDownWrite
}

func isTransientCode(code string) bool {
	if _, ok := retry.DefaultRetryableErrorCodes[code]; ok {
		return true
	}
	switch code {
	case "InternalError", "InternalFailure", "OperationAborted":
		return true
	}
	return isExpired(code)
}

// isExpired: temporary credentials ran out. The next attempt is signed with fresh ones.
func isExpired(code string) bool {
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		return true
	}
	return false
}

// isPermanentCode lists the codes that S3 is known to send inside a 200, where the status says nothing.
func isPermanentCode(code string) bool {
	switch code {
	case "AccessDenied", "BadDigest", "EntityTooLarge", "EntityTooSmall", "InvalidAccessKeyId", "InvalidArgument", "InvalidDigest",
		"InvalidObjectState", "InvalidPart", "InvalidPartOrder", "InvalidRequest", "MalformedXML", "MethodNotAllowed", "NoSuchBucket",
		"NoSuchKey", "NoSuchUpload", "NotImplemented", "PreconditionFailed", "SignatureDoesNotMatch", "XAmzContentChecksumMismatch":
		return true
	}
	return false
}

// isConflict: a 409 that another request in progress caused, as far as can be told; a HEAD or an empty body gives no code but the status text.
func isConflict(status int, code string) bool {
	switch code {
	case "ConditionalRequestConflict":
		return true
	case "", "Conflict", "UnknownError":
		return status == http.StatusConflict
	}
	return false
}

func classifyConflict(operation string, conditional bool, code string) Class {
	switch {
	case operation == opComplete && (conditional || code == "ConditionalRequestConflict"):
		return Ambiguous // S3 wants the upload done anew; whether the object is there must be looked at first
	case code == "ConditionalRequestConflict", operation == opPut && conditional:
		return Transient
	default:
		return Permanent
	}
}

// classifyUnanswered is for errors without an answer: nothing was sent, or nothing came back.
func classifyUnanswered(once bool, err error) Class {
	switch {
	case errors.Is(err, ErrBreakerOpen):
		return Transient
	case isCertificate(err):
		return Permanent
	case isUnsent(err):
		return Transient
	case !isLost(err):
		return Permanent // never left the client: bad input, no credentials
	case once:
		return Ambiguous
	default:
		return Transient
	}
}

// classifyNested is for a call to another service inside an attempt, which is how credentials are fetched. It had retries of its own, its
// throttles say nothing about the store, and it cancels itself by timeouts of its own, which mean that the service is not there.
func classifyNested(oe *smithy.OperationError) Class {
	return retryIf(ClassifyCall("", false, oe.Err).Retryable())
}

func retryIf(yes bool) Class {
	if yes {
		return Transient
	}
	return Permanent
}

// isCanceled: the caller's context ended. The SDK and this package mark that; a bare context error counts too, except below a transport
// error, where it is a timeout of the attempt in the words of the net packages.
func isCanceled(err error) bool {
	var marked interface{ CanceledError() bool }
	if errors.As(err, &marked) {
		return marked.CanceledError()
	}
	if isConnection(err) || statusOf(err) != 0 {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// resignable: the store refused the signature, and the SDK found the clocks to differ; it signs the next attempt with the corrected time.
func resignable(err error) bool {
	var marked interface{ RetryableError() bool }
	return codeOf(err) != "" && errors.As(err, &marked) && marked.RetryableError()
}

// isLost: the request may have reached the store, and no answer came back.
func isLost(err error) bool {
	var marked interface{ RetryableError() bool }
	if errors.As(err, &marked) && marked.RetryableError() {
		return true
	}
	return isConnection(err) || isBroken(err)
}

// isRefusal: the attempt was cut off instead of answered, or not even let in. A name that cannot be resolved and a certificate that is not trusted say
// nothing about load.
func isRefusal(err error) bool {
	if statusOf(err) != 0 || !isLost(err) || isCertificate(err) {
		return false
	}
	_, dns := errors.AsType[*net.DNSError](err)
	return !dns
}

func isConnection(err error) bool {
	var conn interface{ ConnectionError() bool }
	return errors.As(err, &conn) && conn.ConnectionError()
}

// isUnsent: the connection was never made.
func isUnsent(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	oe, ok := errors.AsType[*net.OpError](err)
	return ok && oe.Op == "dial"
}

// isCertificate: no retry makes a certificate valid, or a plain HTTP port speak TLS.
func isCertificate(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		roots        x509.SystemRootsError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &authority) ||
		errors.As(err, &hostname) || errors.As(err, &invalid) || errors.As(err, &roots)
}

// isBroken: the connection ended or stalled in the middle of something, as opposed to carrying something unreadable.
func isBroken(err error) bool {
	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, target) {
			return true
		}
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	if se, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return se.Msg == "unexpected EOF" // the XML decoder's word for a document that stops
	}
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

// statusOf is the HTTP status of the answer, 0 if there was none.
func statusOf(err error) int {
	if err == nil {
		return 0 // without the allocation of v
	}
	var v interface{ HTTPStatusCode() int }
	if errors.As(err, &v) {
		return v.HTTPStatusCode()
	}
	return 0
}

// codeOf is the S3 error code of the answer, "" if there was none.
func codeOf(err error) string {
	var v interface{ ErrorCode() string }
	if errors.As(err, &v) {
		return v.ErrorCode()
	}
	return ""
}
