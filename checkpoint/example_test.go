package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
)

// counter is a participant that counts, and publishes its count when a checkpoint holds it.
type counter struct {
	n      int
	staged map[checkpoint.ID]int
}

func (c *counter) Name() string { return "counter" }

func (c *counter) Capture(id checkpoint.ID) (checkpoint.Snapshot, error) {
	c.staged[id] = c.n
	return snapshot(c.n), nil
}

func (c *counter) Commit(_ context.Context, id checkpoint.ID) error {
	if n, ok := c.staged[id]; ok {
		fmt.Printf("checkpoint %d publishes %d\n", id, n)
		delete(c.staged, id)
	}
	return nil
}

func (c *counter) Restore(_ context.Context, r checkpoint.Restored) (err error) {
	if r.State != nil {
		c.n, err = strconv.Atoi(string(r.State))
		c.staged[r.ID] = c.n
	}
	fmt.Printf("epoch %d begins at %d\n", r.Epoch, c.n)
	return err
}

type snapshot int

func (s snapshot) Store(ctx context.Context, b checkpoint.Blobs) ([]byte, []string, error) {
	text := strings.Repeat("#", int(s)) // larger pieces of state go into blobs
	ref, err := b.Put(ctx, strings.NewReader(text), int64(len(text)))
	return []byte(strconv.Itoa(int(s))), []string{ref}, err
}

func (snapshot) Discard() {}

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	run := func() error {
		store, err := checkpoint.OpenDir(dir, "example", "0-of-1")
		if err != nil {
			return err
		}
		defer store.Close()
		flow := &counter{staged: make(map[checkpoint.ID]int)}
		c, err := checkpoint.NewCoordinator(store, checkpoint.Options{}, flow)
		if err != nil {
			return err
		}
		if _, err := c.Restore(ctx); err != nil {
			return err
		}
		for range 3 {
			if err := c.Step(ctx, func() error { flow.n++; return nil }); err != nil {
				return err
			}
		}
		if _, err := c.Trigger(ctx); err != nil { // c.Run does it periodically
			return err
		}
		// Everything from here to the end of the run is lost, and counted again by the next one.
		if err := c.Step(ctx, func() error { flow.n++; return nil }); err != nil {
			return err
		}
		return c.Close(ctx)
	}
	for range 2 {
		if err := run(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// epoch 1 begins at 0
	// checkpoint 1 publishes 3
	// epoch 2 begins at 3
	// checkpoint 1 publishes 3
	// checkpoint 2 publishes 6
}

func ExampleNewRestartStrategy() {
	o := checkpoint.DefaultRestartOptions(checkpoint.RestartFixedDelay)
	o.FixedDelay.Attempts = 2
	s, err := checkpoint.NewRestartStrategy(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		delay, ok := s.Next(time.Now())
		fmt.Println(delay, ok)
	}
	// Output:
	// 1s true
	// 1s true
	// 0s false
}
