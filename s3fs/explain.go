package s3fs

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
)

// regionHeader is where S3 names the region of a bucket, also in refusals.
const regionHeader = "X-Amz-Bucket-Region"

const hintUnreachable = "check s3.endpoint, the network and whether the store is up"

// explain makes the OpError of a failed call. ctx is the context of the call:
// when it has ended, its cause says more than the SDK's "canceled".
func explain(ctx context.Context, c call, err error) *OpError {
	e := &OpError{
		Op: c.op, Path: c.path, UploadID: c.uploadID, Part: c.part,
		Attempts: retrymode.AttemptsOf(err), Class: retrymode.Classify(err), Err: err,
	}
	if e.Class == retrymode.Canceled && ctx.Err() != nil {
		e.kind, e.ended = context.Cause(ctx), true
		if _, ok := errors.AsType[*CallTimeoutError](e.kind); ok {
			// Our own deadline, not the caller's wish.
			e.Class = retrymode.Transient
			if c.write && e.Attempts > 0 {
				e.Class = retrymode.Ambiguous
			}
		}
		return e
	}
	e.Hint, e.kind = meaningOf(c, err)
	return e
}

// meaningOf finds the sentinel and the hint for an error of the store or of the
// way to it.
func meaningOf(c call, err error) (hint string, kind error) {
	if _, ok := errors.AsType[*credentialsError](err); ok {
		return "set s3.access-key and s3.secret-key, or let the AWS credential chain find some", ErrCredentials
	}
	status := statusOf(err)
	code := ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	switch code {
	case "NoSuchUpload":
		return "", multipart.ErrNoSuchUpload // multipart adds its own hint
	case "NoSuchBucket":
		return "create the bucket, or correct its name", ErrNoBucket
	case "NoSuchKey", "NotFound":
		return "", ErrNotFound
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "XAdminUserNotFound":
		return "check s3.access-key, s3.secret-key and s3.session-token, or the AWS credential chain", ErrCredentials
	case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
		return "the session has expired; s3.session-token cannot renew itself, the AWS credential chain can", ErrCredentials
	case "RequestTimeTooSkewed", "RequestExpired":
		return "the clock of this machine and that of the store differ by more than the store allows; synchronise them", nil
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "IllegalLocationConstraintException":
		return regionHint(err), ErrRegion
	case "PreconditionFailed":
		return "", preconditionOf(c)
	case "BadDigest", "XAmzContentChecksumMismatch":
		return "the bytes were damaged on their way, or the store computes the checksum differently (s3.checksum-validation.enabled)", nil
	}
	switch status {
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return regionHint(err), ErrRegion
	case http.StatusBadRequest:
		if regionOf(err) != "" {
			return regionHint(err), ErrRegion
		}
	case http.StatusForbidden:
		return permissionHint(c.permission), ErrAccessDenied
	case http.StatusNotFound:
		return "", ErrNotFound
	case http.StatusPreconditionFailed:
		return "", preconditionOf(c)
	}
	if status == 0 && unreachable(err) {
		return hintUnreachable, ErrUnreachable
	}
	return "", nil
}

// preconditionOf says what a 412 means: If-Match guards reads, If-None-Match
// guards writes.
func preconditionOf(c call) error {
	if c.write {
		return ErrExists
	}
	return ErrChanged
}

func permissionHint(permission string) string {
	if permission == "" {
		return "the credentials lack a permission"
	}
	return "the credentials need the permission " + permission
}

func regionHint(err error) string {
	if r := regionOf(err); r != "" {
		return "the bucket is in region " + r + "; set s3.region to it"
	}
	return "set s3.region to the region of the bucket, or correct s3.endpoint"
}

// regionOf is the region the store named in its answer, or "".
func regionOf(err error) string {
	re, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || re.Response == nil || re.Response.Response == nil {
		return ""
	}
	return re.Response.Header.Get(regionHeader)
}

func statusOf(err error) int {
	if re, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return re.HTTPStatusCode()
	}
	return 0
}

func requestIDOf(err error) string {
	if re, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return re.RequestID
	}
	return ""
}

// unreachable: no connection was made, and the reason is the address and not
// the moment. A time-out counts too: a firewall that drops packets looks like it.
func unreachable(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	if oe, ok := errors.AsType[*net.OpError](err); ok && oe.Op == "dial" {
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// plainText is the text of the innermost error that still tells the whole
// story: the SDK and net/http wrap it in the name of the operation, the number
// of attempts and the URL, all of which OpError names itself.
func plainText(err error) string {
	if ce, ok := errors.AsType[*credentialsError](err); ok {
		return ce.err.Error()
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err.Error()
	}
	if se, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return se.Err.Error()
	}
	if oe, ok := errors.AsType[*smithy.OperationError](err); ok {
		return strings.TrimSpace(oe.Err.Error())
	}
	return err.Error()
}
