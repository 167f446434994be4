package s3store_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/checkpoint/s3store"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// Two runs of one job: the second takes over, and the first one notices at its next checkpoint.
func Example() {
	ctx := context.Background()
	server := s3test.New(s3test.Options{Buckets: []string{"bucket"}})
	defer server.Close()
	settings := s3fs.DefaultSettings()
	settings.Endpoint, settings.PathStyle, settings.Region = server.URL(), true, "us-east-1"
	settings.AccessKey, settings.SecretKey = "key", "secret"
	fsys, err := s3fs.OpenSettings(ctx, settings, s3fs.WithDialContext(server.DialContext))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fsys.Close(ctx)

	run := func() (*checkpoint.Coordinator, *checkpoint.Value[int]) {
		rows := checkpoint.NewValue("rows", 0)
		store, err := s3store.Open(fsys, s3fs.Path{Bucket: "bucket", Key: "checkpoints"}, "orders", checkpoint.Shard{Index: 0, Count: 1})
		if err != nil {
			fmt.Println(err)
		}
		c, err := checkpoint.NewCoordinator(store, checkpoint.Options{}, rows)
		if err != nil {
			fmt.Println(err)
		}
		id, err := c.Restore(ctx)
		fmt.Println("restored checkpoint", id, "with", rows.Get(), "rows, error", err)
		return c, rows
	}
	first, rows := run()
	_ = first.Step(ctx, func() error { rows.Set(42); return nil })
	id, err := first.Trigger(ctx)
	fmt.Println("saved checkpoint", id, "error", err)

	second, _ := run()
	_, err = first.Trigger(ctx)
	fmt.Println("the first run is fenced off:", errors.Is(err, checkpoint.ErrFenced))
	id, err = second.Trigger(ctx)
	fmt.Println("saved checkpoint", id, "error", err)
	// Output:
	// restored checkpoint 0 with 0 rows, error <nil>
	// saved checkpoint 1 error <nil>
	// restored checkpoint 1 with 42 rows, error <nil>
	// the first run is fenced off: true
	// saved checkpoint 2 error <nil>
}
