package multipart_test

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/multipart"
)

// A file is written, captured for a checkpoint, lost in a crash, resumed in another process, and published.
func Example() {
	ctx := context.Background()
	api, blobs := newStore(), newBlobs() // an in-memory store and checkpoint
	options := multipart.Options{PartSize: 64 << 10, Budget: multipart.NewBudget(1 << 20)}

	u, err := multipart.Start(api, multipart.Target{Bucket: "events", Key: "part-7-0"}, "job/7/0", options)
	if err != nil {
		panic(err)
	}
	_, _ = u.Write(ctx, []byte("in the checkpoint\n"))
	handle, err := u.Capture().Store(ctx, blobs) // its binary form goes into the manifest
	if err != nil {
		panic(err)
	}
	_, _ = u.Write(ctx, []byte("after it\n"))
	u.Abandon() // the crash

	u, err = multipart.Resume(ctx, api, handle, blobs, options)
	if err != nil {
		panic(err)
	}
	_, _ = u.Write(ctx, []byte("after the restart\n"))
	if err := u.Seal(); err != nil {
		panic(err)
	}
	fmt.Println("visible before commit:", api.visible())
	object, err := u.Commit(ctx)
	if err != nil {
		panic(err)
	}
	data, _ := api.content("part-7-0")
	fmt.Printf("%d bytes, token %s\n%s", object.Size, object.Token, data)
	// Output:
	// visible before commit: 0
	// 36 bytes, token job/7/0
	// in the checkpoint
	// after the restart
}
