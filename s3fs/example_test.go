package s3fs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// The examples run on the in-memory store; a real one needs no more than its
// endpoint and credentials in the configuration.
func Example() {
	ctx := context.Background()
	store := s3test.New(s3test.Options{Buckets: []string{"bucket"}})
	defer store.Close()

	registry, err := config.NewRegistry(s3fs.Keys(), retrymode.Keys())
	if err != nil {
		log.Fatal(err)
	}
	cfg, err := config.Load(registry, config.Pairs("-D", []string{
		"s3.endpoint=" + store.URL(), "s3.path-style-access=true", "s3.access-key=test", "s3.secret-key=test",
	}))
	if err != nil {
		log.Fatal(err)
	}

	clients := s3fs.NewClients(s3fs.WithDialContext(store.DialContext))
	fsys, err := clients.Open(ctx, cfg)
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := fsys.Close(ctx); err != nil {
			log.Print(err)
		}
	}()
	if err := fsys.CheckBucket(ctx, "bucket"); err != nil {
		log.Fatal(err)
	}
	base, err := s3fs.ParsePath("s3://bucket/reports")
	if err != nil {
		log.Fatal(err)
	}
	if err := fsys.Put(ctx, base.Join("day 1.txt"), bytes.NewReader([]byte("all quiet"))); err != nil {
		log.Fatal(err)
	}
	for info, err := range fsys.List(ctx, base) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.Path, info.Size)
	}
	r, err := fsys.Open(ctx, base.Join("day 1.txt"))
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(r)
	fmt.Println(string(text), err, r.Close())
	_, err = fsys.Stat(ctx, base.Join("day 2.txt"))
	fmt.Println(err)
	// Output:
	// s3://bucket/reports/day 1.txt 9
	// all quiet <nil> <nil>
	// stat s3://bucket/reports/day 2.txt: not found
}
