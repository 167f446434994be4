package sink_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// copyRows publishes rows 0 to n-1 exactly once, however often it is killed and called again with the same store of checkpoints.
func copyRows(ctx context.Context, fs *s3fs.FS, store checkpoint.Store, n int) error {
	out, err := sink.New(fs, sink.Raw(), sink.Options{Path: s3fs.Path{Bucket: "data", Key: "out"}, Job: "copy"})
	if err != nil {
		return err
	}
	position := checkpoint.NewValue("source", 0) // where your source goes on after a restart
	coord, err := checkpoint.NewCoordinator(store, checkpoint.Options{}, position, out)
	if err != nil {
		return err
	}
	_, err = coord.Restore(ctx)
	for err == nil && position.Get() < n {
		err = coord.Step(ctx, func() error { // the row and the position: in one checkpoint, or in none
			row := fmt.Appendf(nil, "row %d", position.Get())
			position.Set(position.Get() + 1)
			return out.Writer(0).Write(ctx, row)
		})
	}
	if err == nil {
		err = coord.Step(ctx, out.Seal)
	}
	if err == nil {
		_, err = coord.Trigger(ctx) // durable, published, proven; coord.Run does it at an interval
	}
	return errors.Join(err, coord.Close(ctx), out.Close(ctx))
}

func Example() {
	store := s3test.New(s3test.Options{Buckets: []string{"data"}})
	defer store.Close()
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	settings := s3fs.DefaultSettings()
	settings.Endpoint, settings.PathStyle, settings.AccessKey, settings.SecretKey = store.URL(), true, "key", "secret"
	fs, err := s3fs.NewClients(s3fs.WithDialContext(store.DialContext)).OpenSettings(context.Background(), settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	checkpoints, err := checkpoint.OpenDir(dir, "copy", "0-of-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("error:", copyRows(context.Background(), fs, checkpoints, 2500))
	for _, o := range store.Objects("data") {
		fmt.Println(o.Key, bytes.Count(o.Data, []byte("\n")), "lines")
	}
	fmt.Println("closed:", errors.Join(checkpoints.Close(), fs.Close(context.Background())))
	// Output:
	// error: <nil>
	// out/_sluice/copy/0-of-1/record-00000000000000000001.json 1 lines
	// out/part_copy_0-of-1_e1_w0_0.raw 2500 lines
	// closed: <nil>
}
