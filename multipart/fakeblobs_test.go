package multipart_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluice-go/sluice/multipart"
)

// blobs is a checkpoint store in memory.
type blobs struct {
	mu   sync.Mutex
	data map[string][]byte
	err  error
	seen []io.Reader
	log  func(string)
}

var _ multipart.Blobs = (*blobs)(nil)

func newBlobs() *blobs { return &blobs{data: map[string][]byte{}} }

func (b *blobs) Put(_ context.Context, r io.Reader, size int64) (string, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return "", b.err
	}
	if int64(len(data)) != size {
		return "", fmt.Errorf("%d bytes, %d announced", len(data), size)
	}
	ref := fmt.Sprintf("blob%d", len(b.data)+1)
	b.data[ref] = data
	b.seen = append(b.seen, r)
	if b.log != nil {
		b.log(fmt.Sprintf("blob put %s %d bytes", ref, size))
	}
	return ref, nil
}

func (b *blobs) Open(_ context.Context, ref string) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.data[ref]
	if !ok {
		return nil, errors.New("no such blob")
	}
	if b.log != nil {
		b.log("blob open " + ref)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}
