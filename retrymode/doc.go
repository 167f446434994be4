// Package retrymode decides how the S3 client behaves when a call fails: whether it is tried again, after which wait, how many attempts
// may be in flight at once, and when to give up. It turns the s3.retry.* options into one [Retryer] for one client.
//
//	r, err := retrymode.New(retrymode.DefaultOptions())
//	if err != nil {
//		return err
//	}
//	r.Apply(&cfg)                   // cfg is the aws.Config that the client is built from
//	client := s3.NewFromConfig(cfg)
//
// # Guarantees
//
//   - Attempts on the wire are at most MaxRetries + 1 for every operation, in both modes, whatever AWS_MAX_ATTEMPTS and AWS_RETRY_MODE say,
//     as long as the client was set up by [Retryer.Apply] (or with Retryer, RetryMaxAttempts = 0 and [Retryer.Middleware] by hand).
//   - Every 503, with any body or none, every 429 and every SlowDown code counts as a throttle: see [ClassifyCall].
//   - A write that must not be repeated blindly (CompleteMultipartUpload, a conditional PutObject) leaves the retryer as soon as its answer
//     is lost. The caller looks before it asks again.
//   - A retry that cannot start before the deadline of the call is refused at once with a [DeadlineError].
//   - Every wait (limiter, in-flight slot, backoff) ends when the context ends; one that could not end before its deadline is not begun.
//   - An in-flight slot is taken after the limiter and given back with the attempt, however the attempt ends. CompleteMultipartUpload,
//     HeadObject, AbortMultipartUpload and calls marked by [WithPriority] have a lane of their own.
//
// # Modes
//
// Standard waits before each retry: full jitter over base x 2^(n-1), the base being 100 ms, or 1 s after a throttle, never more than 20 s.
// Adaptive makes the same number of attempts and also paces each of them, first ones included, by a gate for its bucket and direction
// (Options.Scope): see package [github.com/sluice-go/sluice/retrymode/gate]. The gate is off until a handful of refusals say that the store is overloaded.
// The waits after refusals (503, 429, a connection closed without an answer) are the gate's holds: a tenth of the base, then full jitter over half the base,
// doubled each time up to MaxBackoff, and shorter when the store is back. All other errors are waited for as in standard mode.
//
// The release of an attempt happens when the headers of its answer have arrived: a GET does not hold its slot while its body is read.
//
// One Retryer belongs to one client: clients that share one share its limiter, slots, breakers and statistics.
package retrymode
