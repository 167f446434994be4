package quotafront

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// Config says what stands behind a front and what it does.
type Config struct {
	// Upstream is the URL of the S3 server.
	Upstream string
	// Rate is the number of requests per second that pass, of all clients together;
	// 0 for no quota. See Bucket.
	Rate float64
	// Burst is the number of requests that pass at once above the rate.
	Burst int
	// CallTime is added to every request that passes, before it reaches the server.
	CallTime time.Duration
	// Now is the clock of the quota. Default: time.Now.
	Now func() time.Time
}

// Counts are requests by what became of them.
type Counts struct {
	Requests int64 // all of them
	Closed   int64 // refused: closed without an answer
	// Failed are requests that passed and were answered by the server with 429 or
	// 5xx, or not at all.
	Failed int64
}

// Front is a running front. Its methods are safe for concurrent use.
type Front struct {
	bucket   *Bucket
	callTime time.Duration
	now      func() time.Time
	proxy    *httputil.ReverseProxy
	pool     *http.Transport
	server   *http.Server
	listener net.Listener
	ended    chan struct{}

	requests, closed, failed atomic.Int64
}

// stopTimeout is how long Stop waits for requests under way.
const stopTimeout = 5 * time.Second

// Start listens on a free port of the loopback address. The caller stops the
// front with Stop.
func Start(ctx context.Context, cfg Config) (*Front, error) {
	target, err := url.Parse(cfg.Upstream)
	if err != nil {
		return nil, fmt.Errorf("front: upstream: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("front: %w", err)
	}
	f := &Front{
		bucket: NewBucket(cfg.Rate, cfg.Burst), callTime: cfg.CallTime, now: cfg.Now, listener: l, ended: make(chan struct{}),
		pool: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute, DisableCompression: true},
	}
	if f.now == nil {
		f.now = time.Now
	}
	silent := log.New(io.Discard, "", 0) // they log about clients that go
	f.proxy = &httputil.ReverseProxy{
		// The path and the Host header stay as they were signed.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
		Transport: f.pool,
		ErrorLog:  silent,
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests {
				f.failed.Add(1)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {
			f.failed.Add(1)
			panic(http.ErrAbortHandler) // no answer of the server, so none from here
		},
	}
	f.server = &http.Server{Handler: http.HandlerFunc(f.serve), ErrorLog: silent, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(f.ended)
		_ = f.server.Serve(l) // ErrServerClosed
	}()
	return f, nil
}

// Endpoint returns the URL of the front.
func (f *Front) Endpoint() string { return "http://" + f.Addr() }

// Addr returns the host and port of the front.
func (f *Front) Addr() string { return f.listener.Addr().String() }

// Counts returns what became of the requests since Start.
func (f *Front) Counts() Counts {
	return Counts{Requests: f.requests.Load(), Closed: f.closed.Load(), Failed: f.failed.Load()}
}

// Stop ends the front and waits for the requests under way, for a while.
func (f *Front) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err := f.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = f.server.Close()
	}
	<-f.ended
	f.pool.CloseIdleConnections()
	return err
}

func (f *Front) serve(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	if !f.bucket.Take(f.now()) {
		f.closed.Add(1)
		// The server closes the connection and says nothing. What it has not read of
		// the body makes that a reset, as it does for any server that hangs up.
		panic(http.ErrAbortHandler)
	}
	if f.callTime > 0 {
		timer := time.NewTimer(f.callTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	f.proxy.ServeHTTP(w, r)
}
