package retrymode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// ErrBreakerOpen is matched by every error with which the circuit breaker ended or refused a call. It is never returned while
// s3.retry.circuit-breaker.enabled is false.
var ErrBreakerOpen = errors.New("circuit breaker open")

// BreakerOpenError says that the retry quota of the call's scope (see [Scope]) is used up; calls of other scopes go on. When it ended a call that had already been sent, the call's own error is joined to it.
type BreakerOpenError struct {
	// Available and Needed are the tokens left in the quota and the price of the retry. Both are 0 when the call was refused before
	// its first attempt.
	Available, Needed uint
	// RetryIn is the time until the breaker lets the next probe through, 0 when calls still go and only their retries are refused.
	RetryIn time.Duration

	quota error // the SDK's own error, if there was one
}

func (e *BreakerOpenError) Error() string {
	if e.RetryIn > 0 {
		return fmt.Sprintf("circuit breaker open, next probe in %s", e.RetryIn.Round(time.Millisecond))
	}
	return fmt.Sprintf("circuit breaker open: retry quota used up, %d tokens left, %d needed", e.Available, e.Needed)
}

// Is matches [ErrBreakerOpen].
func (e *BreakerOpenError) Is(target error) bool { return target == ErrBreakerOpen }

// Unwrap returns the SDK's ratelimit.QuotaExceededError, if the quota refused a retry.
func (e *BreakerOpenError) Unwrap() error { return e.quota }

// DeadlineError ends a call whose next retry could not have started before the deadline of its context. It matches
// [context.DeadlineExceeded] and unwraps to the error of the last attempt.
type DeadlineError struct {
	Wait time.Duration // the wait that was due
	Left time.Duration // the time that was left
	Err  error         // the last attempt's error
}

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("next retry is due in %s, deadline in %s: %v", e.Wait.Round(time.Millisecond), e.Left.Round(time.Millisecond), e.Err)
}

// Is matches [context.DeadlineExceeded].
func (e *DeadlineError) Is(target error) bool { return target == context.DeadlineExceeded }

// Unwrap returns the last attempt's error.
func (e *DeadlineError) Unwrap() error { return e.Err }

// WaitError says that the context ended while an attempt waited to be sent, or would have ended before the wait did. Nothing was sent. It
// matches the context's error ([context.Canceled] or [context.DeadlineExceeded]) and its cause.
type WaitError struct {
	Operation string        // SDK name of the operation
	For       string        // what it waited for: "limiter" or "slot"
	Waited    time.Duration // how long
	Err       error         // the context's error
	Cause     error         // context.Cause; equal to Err unless the context was ended with a cause of its own
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("%s waited %s for %s: %v", e.Operation, e.Waited.Round(time.Millisecond), e.For, e.Cause)
}

// Unwrap returns the context's error and its cause.
func (e *WaitError) Unwrap() []error { return []error{e.Err, e.Cause} }

// CanceledError marks the error as a cancellation for the SDK.
func (e *WaitError) CanceledError() bool { return true }

// AttemptError carries what the retryer knew about a failed call through the SDK to the caller. Every error of a client with
// [Retryer.Middleware] contains one. Its text is that of Err: the SDK already names the operation and the number of attempts where they matter.
type AttemptError struct {
	Operation string // SDK name of the operation
	Attempts  int    // attempts sent up to and including the one that failed
	Class     Class  // class of Err for this operation
	Err       error

	// RetryDelay has no context: these are the call's deadline, zero = none, and the call, nil = ended.
	deadline time.Time
	call     *call
}

func (e *AttemptError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *AttemptError) Unwrap() error { return e.Err }

// errAmbiguous ends a call whose answer was lost when the middleware, which would have ended it earlier, is not installed.
var errAmbiguous = errors.New("outcome unknown, not sent again")

// AttemptsOf returns how many attempts a failed call made on the wire, 0 when err does not say (nil, or not from a client with this package's retryer).
func AttemptsOf(err error) int {
	if ae, ok := errors.AsType[*AttemptError](err); ok {
		return ae.Attempts
	}
	if me, ok := errors.AsType[*retry.MaxAttemptsError](err); ok {
		return me.Attempt
	}
	return 0
}
