package quota

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sluice-go/sluice/e2e/testbed/internal/nginx"
	"github.com/sluice-go/sluice/e2e/testbed/internal/quotafront"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// Tally is what a quota counted. It is the witness against the client's counts.
type Tally struct {
	Requests int64 `json:"requests"`
	Refused  int64 `json:"refused"` // 503 or closed, by the lane
	Aborted  int64 `json:"aborted"` // given up by the client before it was answered
	Failed   int64 `json:"failed"`  // passed, and answered with 429 or 5xx by the store
}

// final is the number of answers that a client does not repeat a request for.
func (t Tally) final() int64 { return t.Requests - t.Refused - t.Failed - t.Aborted }

// limited is a store behind a quota.
type limited struct {
	store *store.Store
	relay *quotafront.Front // gives nginx's calls their time; nil in the other lane
	front *quotafront.Front // the quota of the lane Close
	nginx *nginx.Server     // the quota of the lane SlowDown

	seen quotafront.Counts // of front, by tally
}

// open starts all of it in dir, which exists.
func open(ctx context.Context, o Options, lane Lane, dir string) (_ *limited, err error) {
	l := &limited{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close(ctx))
		}
	}()
	l.store, err = store.Start(ctx, store.Config{
		Root: filepath.Join(dir, storeDir), Log: filepath.Join(dir, "store.log"), Command: o.StoreCommand,
	})
	if err != nil {
		return nil, err
	}
	if err := l.store.CreateBucket(ctx, bucketName); err != nil {
		return nil, err
	}
	cfg := quotafront.Config{Upstream: l.store.Endpoint(), CallTime: o.CallTime}
	if lane == Close {
		cfg.Rate, cfg.Burst = o.Rate, o.Burst
		l.front, err = quotafront.Start(ctx, cfg)
		return l, err
	}
	if l.relay, err = quotafront.Start(ctx, cfg); err != nil {
		return nil, err
	}
	l.nginx, err = nginx.Start(ctx, nginx.Config{Rate: o.Rate, Burst: o.Burst, Upstream: l.relay.Addr(), Dir: dir, Path: o.Nginx})
	return l, err
}

// target is how a job reaches the store through the quota.
func (l *limited) target() target {
	t := target{region: store.Region, accessKey: l.store.AccessKey(), secretKey: l.store.SecretKey()}
	if l.front != nil {
		t.endpoint = l.front.Endpoint()
	} else {
		t.endpoint = l.nginx.Endpoint()
	}
	return t
}

// tally returns the counts since the last call.
func (l *limited) tally(ctx context.Context) (Tally, error) {
	if l.nginx != nil {
		c, err := l.nginx.Counts(ctx)
		return Tally{Requests: c.Requests, Refused: c.Refused, Aborted: c.Aborted, Failed: c.Failed}, err
	}
	now, before := l.front.Counts(), l.seen
	l.seen = now
	return Tally{Requests: now.Requests - before.Requests, Refused: now.Closed - before.Closed, Failed: now.Failed - before.Failed}, nil
}

// watch ends the work when a process behind the quota ends by itself. The
// returned function ends the watch and waits for it.
func (l *limited) watch(cancel context.CancelCauseFunc) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	var proxy <-chan struct{} // nil: never
	if l.nginx != nil {
		proxy = l.nginx.Done()
	}
	go func() {
		defer close(ended)
		select {
		case <-l.store.Done():
			cancel(fmt.Errorf("store: %w", l.store.Err()))
		case <-proxy:
			cancel(errors.New("nginx has ended by itself"))
		case <-quit:
		}
	}()
	return func() { close(quit); <-ended }
}

// close stops what was started, from the outside in, also when ctx is done.
func (l *limited) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	var errs []error
	if l.nginx != nil {
		errs = append(errs, l.nginx.Stop())
	}
	for _, f := range []*quotafront.Front{l.front, l.relay} {
		if f != nil {
			errs = append(errs, f.Stop(ctx))
		}
	}
	if l.store != nil {
		errs = append(errs, l.store.Stop(ctx))
	}
	return errors.Join(errs...)
}
