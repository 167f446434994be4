package s3fs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/sluice-go/sluice/retrymode"
)

const (
	// probeTimeout bounds one look at the endpoint: who starts a job wants to know
	// within seconds that the address is wrong.
	probeTimeout = 5 * time.Second
	// probePause is between the two looks at an endpoint that refuses connections,
	// for a store that is just starting.
	probePause = time.Second
	// credentialsTimeout bounds the search for credentials, which may ask services
	// of the instance one after the other.
	credentialsTimeout = 15 * time.Second
)

// CheckBucket asks whether the bucket can be used, before any data moves. It
// tells apart what people get wrong: ErrCredentials (none found, or refused),
// ErrUnreachable (within seconds, not after all retries), ErrNoBucket, ErrRegion
// (with the region the store names), ErrAccessDenied. A store that is only
// overloaded is asked again like in any other call.
//
// It needs the permission s3:ListBucket. It does not show that objects may be
// written.
func (f *FS) CheckBucket(ctx context.Context, bucket string) error {
	c := call{op: "check bucket", path: Path{Bucket: bucket}, permission: "s3:ListBucket"}
	if err := f.checkCredentials(ctx, c); err != nil {
		return err
	}
	err := f.knock(ctx, c)
	if errors.Is(err, ErrUnreachable) {
		if err := sleep(ctx, f.life, probePause); err != nil {
			return explain(ctx, c, err)
		}
		err = f.knock(ctx, c)
	}
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	if e, ok := errors.AsType[*OpError](err); ok && e.Class.Retryable() {
		err = f.headBucket(ctx, c)
	}
	return f.learnMore(ctx, c, err)
}

// checkCredentials separates the search for credentials from the look at the
// endpoint, which has a shorter time-out.
func (f *FS) checkCredentials(ctx context.Context, c call) error {
	if err := f.enter(ctx, c); err != nil {
		return err
	}
	defer f.leave()
	if f.client.credentials == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, credentialsTimeout)
	defer cancel()
	if _, err := f.client.credentials.Retrieve(limited); err != nil {
		if ctx.Err() != nil {
			return explain(ctx, c, context.Cause(ctx))
		}
		return explain(context.Background(), c, err)
	}
	return nil
}

// knock asks once, without retries.
func (f *FS) knock(ctx context.Context, c call) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := f.headBucket(limited, c, func(o *s3.Options) { o.Retryer = retry.AddWithMaxAttempts(f.client.retryer, 1) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return &OpError{
			Op: c.op, Path: c.path, Attempts: 1, Class: retrymode.Transient, kind: ErrUnreachable, Hint: hintUnreachable,
			Err: fmt.Errorf("no answer within %v", probeTimeout),
		}
	}
	return err
}

func (f *FS) headBucket(ctx context.Context, c call, opts ...func(*s3.Options)) error {
	_, err := invoke(ctx, f, c, func(ctx context.Context) (*s3.HeadBucketOutput, error) {
		return f.client.s3.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String(c.path.Bucket)}, opts...)
	})
	return err
}

// learnMore turns the answer to a HEAD, which has a status and no words, into
// one that says what is wrong. A 404 is asked about as well: some stores answer
// so when it is the access key that they do not know.
func (f *FS) learnMore(ctx context.Context, c call, err error) error {
	e, ok := errors.AsType[*OpError](err)
	if !ok || errors.Is(e.kind, ErrRegion) {
		return err
	}
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest:
	default:
		return err
	}
	_, err = invoke(ctx, f, c, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return f.client.s3.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(c.path.Bucket), MaxKeys: aws.Int32(1)})
	})
	if e, ok = errors.AsType[*OpError](err); ok && statusOf(err) == http.StatusNotFound && !errors.Is(e.kind, ErrCredentials) {
		e.kind, e.Hint = ErrNoBucket, "create the bucket, or correct its name or s3.endpoint"
	}
	return err
}

// credentialsError marks that no request was sent because there is nothing to
// sign it with.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string { return e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// namedCredentials marks the errors of a provider.
type namedCredentials struct{ aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (n namedCredentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := n.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		err = &credentialsError{err}
	}
	return c, err
}
