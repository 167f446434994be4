package sim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/crashfs"
	"github.com/sluice-go/sluice/checkpoint/s3store"
	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/sink"
)

// life is one process that runs the job, from its start to its end.
type life struct {
	w      *world
	number int
	plan   lifePlan
	proc   *crashfs.Process

	dead context.Context // ends when the life is killed
	die  context.CancelCauseFunc
	stop chan struct{} // closed: end gracefully
	over chan struct{} // closed: the next life may begin
	gone chan struct{} // closed: nothing of this life runs any more

	// The scheduler's.
	held  bool // the hold, under the world's mutex
	count int  // events of the kind that ends the life
	left  int  // events that a zombie has left
	calls int

	zombie atomic.Bool
	ending sync.Once // of over

	fs     *s3fs.FS
	store  checkpoint.RewindStore
	epoch  int64 // claimed last
	source *datagen.Source
	gen    *datagen.Generator
	sink   *sink.Sink[[]byte]
	coord  *checkpoint.Coordinator

	stopping atomic.Bool // writers begin no further batch

	// Set when gone is closed.
	err      error
	finished bool  // the source has ended and everything is published
	stopped  bool  // ended as it was told to
	used     int64 // bytes of the budget that were not given back
}

func (w *world) newLife(number int, p lifePlan) *life {
	l := &life{
		w: w, number: number, plan: p, proc: w.disk.Process(),
		stop: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
	}
	l.dead, l.die = context.WithCancelCause(context.Background())
	l.proc.Hook = l.fileOp
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives = append(w.lives, l)
	return l
}

func (l *life) isZombie() bool { return l.zombie.Load() }

// haunt makes a zombie of the life: it goes on, and the next one begins.
func (l *life) haunt() {
	l.left = l.plan.end.more
	l.zombie.Store(true)
	l.ending.Do(func() { close(l.over) })
}

// run is the life of the process.
func (l *life) run() {
	defer close(l.gone)
	defer l.ending.Do(func() { close(l.over) })
	l.err = l.live(l.dead)
	l.err = errors.Join(l.err, l.close())
	l.proc.Kill()            // the process ends; what it still holds is free
	if l.dead.Err() == nil { // else it is in the log that it was killed
		// Which error it was may depend on which goroutine came first, and is no part of what is replayed.
		l.w.logf("life %d is over, finished: %t, stopped: %t", l.number, l.finished, l.stopped)
	}
	l.die(errKilled)
}

// live does what the job does between two failures.
func (l *life) live(ctx context.Context) error {
	err := l.attempt(ctx)
	if l.lost(err) {
		return l.again(ctx)
	}
	return err
}

func (l *life) attempt(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	_, err := l.coord.Restore(ctx)
	if l.lost(err) {
		return err
	}
	if _, pending := errors.AsType[*checkpoint.CommitError](err); err != nil && (!pending || l.plan.tolerable == 0) {
		return fmt.Errorf("restore: %w", err)
	}
	return l.flow(ctx)
}

// openStore opens the store and the checkpoints.
func (l *life) openStore(ctx context.Context) (err error) {
	w, p := l.w, l.plan
	if l.fs, err = w.openFS(ctx, &network{w: w, life: l}, p); err != nil {
		return err
	}
	var store checkpoint.RewindStore
	if w.plan.bucket {
		store, err = s3store.Open(l.fs, s3fs.Path{Bucket: stateBucket, Key: dirName}, jobName, checkpoint.Shard{Count: 1})
	} else {
		store, err = checkpoint.OpenDirFS(l.proc, dirName, jobName, shard)
	}
	if err != nil {
		return err
	}
	l.store = orderedStore{store, l}
	return nil
}

// open builds the rooms.
func (l *life) open(ctx context.Context) (err error) {
	w, p := l.w, l.plan
	if err := l.openStore(ctx); err != nil {
		return err
	}
	if l.source, err = datagen.NewSource(w.source, checkpoint.Shard{Count: 1}); err != nil {
		return err
	}
	if l.gen, err = w.source.Generator(); err != nil {
		return err
	}
	o := p.sink()
	switch {
	case w.plan.rewrite:
		o.Expired = sink.ExpiredRewrite
	case w.plan.skip:
		o.Expired = sink.ExpiredSkip
	}
	if l.sink, err = sink.New(l.fs, sink.Raw(), o); err != nil {
		return err
	}
	l.coord, err = checkpoint.NewCoordinator(l.store, checkpoint.Options{
		Interval: p.interval, Timeout: p.timeout, MinPause: p.minPause, TolerableFailures: p.tolerable, Retain: p.retain,
		CommitBacklog: p.backlog,
	}, l.source, orderedSink{l.sink, l})
	return err
}

// openFS returns a client whose calls go through t.
func (w *world) openFS(ctx context.Context, t http.RoundTripper, p lifePlan) (*s3fs.FS, error) {
	s := s3fs.DefaultSettings()
	s.Endpoint, s.PathStyle, s.Region = w.store.URL(), true, "us-east-1"
	s.AccessKey, s.SecretKey = "key", "secret"
	s.Checksums, s.CallTimeout = w.plan.store.checksums, p.callTimeout
	s.Retry.Mode, s.Retry.MaxRetries = retrymode.Standard, p.retries
	// A random share of a nanosecond is none: the waits between attempts are all zero.
	s.Retry.BaseDelay, s.Retry.ThrottleBaseDelay, s.Retry.MaxBackoff = 1, 1, 1
	return s3fs.OpenSettings(ctx, s, s3fs.WithHTTPClient(&http.Client{Transport: t}))
}

func (p lifePlan) sink() sink.Options {
	return sink.Options{
		Path: path, Job: jobName, Writers: p.writers,
		Rolling:  sink.Rolling{FileSize: p.fileSize, OnCheckpoint: p.onCheckpoint},
		PartSize: p.partSize, UploadConcurrency: p.concurrency, CommitParallelism: p.commits, PersistWait: p.persistWait,
		MemoryBudget: budgetOf(p), CommitDeadline: p.deadline, ListThreshold: p.listed,
	}
}

// flow moves the rows: writers and periodic checkpoints side by side, then the final checkpoint.
func (l *life) flow(ctx context.Context) error {
	ctx, fail := context.WithCancel(ctx)
	defer fail()
	g, gctx := errgroup.WithContext(ctx)
	periodic, endPeriodic := context.WithCancel(gctx)
	defer endPeriodic()
	var writers sync.WaitGroup
	for i := range l.sink.Writers() {
		writers.Add(1)
		g.Go(func() error {
			defer writers.Done()
			return l.write(gctx, i)
		})
	}
	ended := make(chan struct{})
	g.Go(func() error {
		writers.Wait()
		close(ended)
		return nil
	})
	g.Go(func() error {
		// When the first checkpoint is due at once, the writers must have come as far as they can, or chance decides who of them is let in.
		if err := l.ask(periodic, "the coordinator"); err != nil {
			return nil // the life is over
		}
		return l.coord.Run(periodic)
	})
	var err error
	select {
	case <-ended:
		if gctx.Err() == nil {
			err = l.finish(gctx)
		}
	case <-gctx.Done():
	case <-l.stop:
		l.stopping.Store(true)
		if err = l.ask(ctx, "the stop"); err == nil {
			_, err = l.coord.Trigger(ctx)
		}
		l.stopped = err == nil
	}
	if err != nil {
		fail()
	}
	if asked := l.ask(l.dead, "the end"); asked == nil { // a checkpoint that was due has begun, or does not begin any more
		err = errors.Join(err, l.coord.Close(ctx))
	}
	endPeriodic()
	err = errors.Join(err, g.Wait())
	if l.stopped && err == nil && l.source.Position().Next != l.sink.Stats().DurableRows {
		err = fmt.Errorf("stopped: %d rows are durable, but the source is at %d", l.sink.Stats().DurableRows, l.source.Position().Next)
	}
	return err
}

// write is one writer's loop. It asks for its turn inside the step, so that what happens after a barrier is up to the
// scheduler and not to the order in which writers wake up.
func (l *life) write(ctx context.Context, i int) error {
	var row []byte
	for {
		ended := false
		err := l.coord.Step(ctx, func() error {
			if err := l.ask(ctx, fmt.Sprintf("writer %d", i)); err != nil {
				return checkpoint.NoEffect(err)
			}
			if ended = l.stopping.Load(); ended {
				return nil
			}
			b := l.source.Next(l.plan.batch)
			ended = b.Count == 0
			for k := range b.Count {
				row = l.gen.Append(row[:0], b.Row(k))
				if err := l.sink.Writer(i).Write(ctx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || ended {
			return err
		}
	}
}

// finish publishes everything once the source has ended.
func (l *life) finish(ctx context.Context) error {
	if err := l.ask(ctx, "the end of the source"); err != nil {
		return err
	}
	if err := l.coord.Step(ctx, l.sink.Seal); err != nil {
		return err
	}
	var err error
	for range l.plan.tolerable + 1 {
		if _, err = l.coord.Trigger(ctx); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if n := l.sink.Stats().PendingFiles; n > 0 {
		return fmt.Errorf("%d files are still pending after the final checkpoint", n)
	}
	l.finished = true
	return nil
}

// close ends the rooms from the top down. It publishes nothing.
func (l *life) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	if l.coord != nil {
		errs = append(errs, l.coord.Close(ctx))
	}
	if l.sink != nil {
		errs = append(errs, l.sink.Close(ctx))
		l.used += l.sink.Stats().Budget.Used
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if l.fs != nil {
		errs = append(errs, l.fs.Close(ctx))
	}
	return errors.Join(errs...)
}
