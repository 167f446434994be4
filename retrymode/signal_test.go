package retrymode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fails makes a wire on which every attempt fails with err.
func fails(err error) *wire {
	return &wire{answer: func(int, *http.Request, []byte) (*http.Response, error) { return nil, err }}
}

// Twelve calls at once meet the same answer, and twelve more. Some answers mean that the store has too much to do; most do not.
func TestWhatTurnsTheGateOnAndWhatNever(t *testing.T) {
	op := func(o string, err error) error { return &net.OpError{Op: o, Net: "tcp", Err: err} }
	type do = func(context.Context, *s3.Client) error
	for _, tt := range []struct {
		name string
		wire *wire
		do   do
		on   bool
	}{
		{"503 SlowDown", always(503, xmlError("SlowDown")), get, true},
		{"503 SlowDownWrite", always(503, xmlError("SlowDownWrite")), put, true},
		{"503 to a HEAD", always(503, ""), head, true},
		{"503 without a body", always(503, ""), get, true},
		{"503 in HTML", always(503, "<html>busy</html>"), get, true},
		{"503 with a code nobody knows", always(503, xmlError("XyzBusy")), get, true},
		{"429", always(429, ""), get, true},
		{"SlowDown inside a 200", always(200, xmlError("SlowDown")), complete, true},
		{"connection reset", fails(op("read", syscall.ECONNRESET)), get, true},
		{"connection reset while a part is sent", fails(op("write", syscall.EPIPE)), put, true},
		{"connection reset by a commit", fails(op("read", syscall.ECONNRESET)), complete, true},
		{"connection closed", fails(io.EOF), get, true},
		{"connection refused", fails(op("dial", syscall.ECONNREFUSED)), get, true},

		{"200", always(200, ""), put, false},
		{"404", always(404, xmlError("NoSuchKey")), get, false},
		{"404 to a HEAD", always(404, ""), head, false},
		{"403", always(403, xmlError("AccessDenied")), get, false},
		{"412", always(412, xmlError("PreconditionFailed")), putIfAbsent, false},
		{"409", always(409, xmlError("ConditionalRequestConflict")), putIfAbsent, false},
		{"400 ExpiredToken", always(400, xmlError("ExpiredToken")), get, false},
		{"400 RequestTimeout", always(400, xmlError("RequestTimeout")), put, false},
		{"500", always(500, xmlError("InternalError")), get, false},
		{"InternalError inside a 200", always(200, xmlError("InternalError")), complete, false},
		{"501", always(501, xmlError("NotImplemented")), get, false},
		{"502", always(502, "<html>"), get, false},
		{"504", always(504, ""), get, false},
		{"200 with half a body", always(200, completed[:80]), complete, false},
		{"no such host", fails(op("dial", &net.DNSError{Err: "no such host", Name: "store.example", IsNotFound: true})), get, false},
		{"DNS server in trouble", fails(op("dial", &net.DNSError{Err: "server misbehaving", Name: "store.example", IsTemporary: true})), get, false},
		{"certificate of somebody else", fails(x509.HostnameError{Host: "store.example", Certificate: &x509.Certificate{}}), get, false},
		{"certificate nobody trusts", fails(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), get, false},
		{"no TLS at all", fails(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), get, false},
		{"no credentials", always(200, ""), func(ctx context.Context, c *s3.Client) error {
			return drop(c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key}, func(o *s3.Options) {
				o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errBoom })
			}))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRetryer(t, adaptive(0))
				tt.wire.latency = 10 * time.Millisecond
				c := newClient(r, tt.wire)
				on := false
				for range 2 {
					var wg sync.WaitGroup
					for range 12 {
						wg.Go(func() { _ = tt.do(t.Context(), c) })
					}
					wg.Wait()
					for _, g := range r.Stats().Gates {
						on = on || g.On
					}
				}
				assert.Equal(t, tt.on, on)
				nothingLeft(t, r)
			})
		})
	}
}

// What the caller itself ends says nothing about the store: contexts that end in flight, at once or by a deadline.
func TestCancellationsOfTheCallerNeverThrottleTheGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(3))
		c := newClient(r, slow(time.Hour))
		for range 5 {
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					if i%2 == 0 {
						time.AfterFunc(50*time.Millisecond, cancel)
					}
					err := get(ctx, c)
					assert.Equal(t, Canceled, Classify(err), "%v", err)
				})
			}
			wg.Wait()
		}
		assert.Equal(t, "", stateText(r))
		nothingLeft(t, r)
	})
}

// stateText names the gates that are on.
func stateText(r *Retryer) (text string) {
	for _, g := range r.Stats().Gates {
		if g.On {
			text += g.Scope + " "
		}
	}
	return text
}

// A timeout of one attempt is not the caller's: the store did not answer in time.
func TestTimeoutsOfAttemptsAreRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		w := slow(time.Hour)
		c := newClient(r, w, func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: w, Timeout: time.Second} })
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				err := get(t.Context(), c)
				var ue *url.Error
				assert.True(t, errors.As(err, &ue) && ue.Timeout(), "%v", err)
			})
		}
		wg.Wait()
		assert.Equal(t, "b/ read ", stateText(r))
	})
}

// What the limiter is told of each kind of answer: refused, served, or nothing that it could learn from.
func TestOutcomeOfEveryKindOfAnswer(t *testing.T) {
	const refused, served, nothing = "refused", "served", "nothing"
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, tt := range []struct {
		want string
		do   func(context.Context, *s3.Client) error
		wire *wire
	}{
		{refused, get, always(503, "")},
		{refused, get, always(429, "")},
		{refused, get, fails(reset)},
		{refused, complete, fails(reset)},
		{refused, complete, always(200, xmlError("SlowDown"))},
		{served, put, always(200, "")},
		{served, head, always(404, "")},
		{served, putIfAbsent, always(412, xmlError("PreconditionFailed"))},
		{served, putIfAbsent, always(409, xmlError("ConditionalRequestConflict"))},
		{served, get, always(400, xmlError("ExpiredToken"))},
		{served, put, always(501, xmlError("NotImplemented"))},
		{nothing, get, always(500, "")},
		{nothing, get, always(504, "")},
		{nothing, get, always(408, "")},
		{nothing, complete, always(200, completed[:80])},
		{nothing, get, fails(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", IsNotFound: true}})},
		{nothing, get, fails(tls.RecordHeaderError{})},
	} {
		bubble(t, func(t *testing.T) {
			rec := &recordingLimiter{}
			r := newRetryer(t, standard(0))
			r.limiter = rec
			_ = tt.do(t.Context(), newClient(r, tt.wire))
			require.Len(t, rec.outcomes, 1)
			got := nothing
			switch o := rec.outcomes[0]; {
			case o.refused() && o.served:
				got = "both"
			case o.refused():
				got = refused
			case o.served:
				got = served
			}
			assert.Equal(t, tt.want, got, "%+v", rec.outcomes[0])
		})
	}
}

// A gate that is on hears nothing but 404, 412 and other answers of that kind: it must not read them as "nothing was delivered".
func TestStormOf404sDoesNotCutTheRate(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wire  *wire
		do    func(context.Context, *s3.Client) error
		scope scope
	}{
		{"404", always(404, ""), head, reads},
		{"409", always(409, xmlError("ConditionalRequestConflict")), putIfAbsent, writes},
		{"501", always(501, xmlError("NotImplemented")), put, writes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRetryer(t, adaptive(0))
				pace(t, r, tt.scope, 100)
				before := gateOf(r, tt.scope).Rate
				tt.wire.latency = 20 * time.Millisecond
				c := newClient(r, tt.wire)
				for range 3 {
					burst(t, c, tt.do, 80, 16)
					g := gateOf(r, tt.scope)
					require.True(t, g.On)
					assert.GreaterOrEqual(t, g.Rate, before)
				}
			})
		})
	}
}

// A store that closes connections instead of saying 503 is paced in the same way, to the same rate.
func TestClosedConnectionsArePacedLike503s(t *testing.T) {
	run := func(refuse func(*http.Request) (*http.Response, error)) (rate float64, sent int) {
		bubble(t, func(t *testing.T) {
			r := newRetryer(t, adaptive(1000), seed(1))
			w := wall(50*time.Millisecond, constant(50), refuse)
			ctx, stop := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Second, stop)
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for ctx.Err() == nil {
						_ = attemptsOf(ctx, r, w)
					}
				})
			}
			wg.Wait()
			nothingLeft(t, r)
			rate, sent = gateOf(r, writes).Rate, w.attempts()
		})
		return rate, sent
	}
	rate, sent := run(slowDown)
	assert.InDelta(t, 50, rate, 12)
	assert.InDelta(t, 300, sent, 60, "fifty a second, and what it took to find that out")
	closedRate, closedSent := run(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	})
	assert.InDelta(t, rate, closedRate, 12)
	assert.InDelta(t, sent, closedSent, 50)
}
