package s3fs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// Cases from public bug reports about other clients, in which the upload on top of the file system matters.

func bothModes(t *testing.T, retries int, test func(t *testing.T, set func(*s3fs.Settings))) {
	t.Helper()
	for _, mode := range []retrymode.Mode{retrymode.Standard, retrymode.Adaptive} {
		t.Run(mode.String(), func(t *testing.T) {
			test(t, func(s *s3fs.Settings) { s.Retry.Mode, s.Retry.MaxRetries = mode, retries })
		})
	}
}

// writeParts writes an upload of n parts of 64 KiB.
func writeParts(t *testing.T, s store, key string, n int) (*multipart.Upload, error) {
	t.Helper()
	const size = 64 << 10
	u, err := multipart.Start(s.API(), multipart.Target{Bucket: "b", Key: key}, "token", multipart.Options{
		PartSize: size, Budget: multipart.NewBudget(64 * size),
	})
	require.NoError(t, err)
	_, err = u.Write(s.ctx, text(n*size))
	return u, err
}

// O-30: the uploader retried what the client had retried already, 5 x 5 attempts. Here one layer owns the attempts: a part that always fails is sent
// retries + 1 times until the upload gives up, and so is a commit.
func TestBugO30_OnlyOneLayerOwnsTheAttempts(t *testing.T) {
	bothModes(t, 4, func(t *testing.T, set func(*s3fs.Settings)) {
		for _, op := range []s3test.Op{s3test.CreateMultipartUpload, s3test.UploadPart, s3test.CompleteMultipartUpload} {
			t.Run(string(op), func(t *testing.T) {
				bubble(t, options{server: smallParts, settings: set}, func(t *testing.T, s store) {
					m := s3test.Match{Op: op}
					if op == s3test.UploadPart {
						m.Part = 2
					}
					defer s.srv.Control(m, s3test.Always(s3test.SlowDown()))()
					u, err := writeParts(t, s, "k", 3)
					if err == nil {
						require.NoError(t, u.Seal())
						_, err = u.Commit(s.ctx)
					}
					require.Error(t, err)
					oe, ok := errors.AsType[*s3fs.OpError](err)
					require.True(t, ok, "%v", err)
					assert.Equal(t, 5, oe.Attempts)
					want := 5
					if op == s3test.UploadPart {
						want += 2 // parts 1 and 3
					}
					assert.Equal(t, want, s.srv.Counts().Total(op))
					u.Abandon()
				})
			})
		}
	})
}

// O-33: a 503 while a job recovers was fatal. Eight files are resumed while the store refuses everything for its first five seconds.
func TestBugO33_ResumeOutlastsAnOutage(t *testing.T) {
	bothModes(t, 10, func(t *testing.T, set func(*s3fs.Settings)) {
		bubble(t, options{server: smallParts, settings: set}, func(t *testing.T, s store) {
			const files = 8
			var handles []multipart.Handle
			blobs := &memoryBlobs{}
			for i := range files {
				u, err := writeParts(t, s, fmt.Sprintf("k%d", i), 2)
				require.NoError(t, err)
				h, err := u.Capture().Store(s.ctx, blobs)
				require.NoError(t, err)
				handles = append(handles, h)
				u.Abandon()
			}
			start := time.Now()
			defer s.srv.Control(s3test.Match{}, func(s3test.Request) *s3test.Reply {
				if time.Since(start) < 5*time.Second {
					return s3test.SlowDown()
				}
				return nil
			})()
			var wg sync.WaitGroup
			for _, h := range handles {
				wg.Go(func() {
					u, err := multipart.Resume(s.ctx, s.API(), h, blobs, multipart.Options{PartSize: h.PartSize, Budget: multipart.NewBudget(64 * h.PartSize)})
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, u.Seal())
					_, err = u.Commit(s.ctx)
					assert.NoError(t, err)
				})
			}
			wg.Wait()
			for i := range files {
				o, ok := s.srv.Object("b", fmt.Sprintf("k%d", i))
				require.True(t, ok)
				assert.Equal(t, text(2*64<<10), o.Data)
			}
		})
	})
}

// memoryBlobs are a checkpoint's blobs in memory.
type memoryBlobs struct {
	mu  sync.Mutex
	all [][]byte
}

func (m *memoryBlobs) Put(_ context.Context, r io.Reader, _ int64) (string, error) {
	data, err := io.ReadAll(r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, data)
	return strconv.Itoa(len(m.all) - 1), err
}

func (m *memoryBlobs) Open(_ context.Context, ref string) (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, err := strconv.Atoi(ref)
	return io.NopCloser(bytes.NewReader(m.all[i])), err
}

// O-40: what is being sent when attempts time out is not dropped: twice no answer within the timeout, then the part is there.
func TestBugO40_PartSurvivesTimeouts(t *testing.T) {
	bothModes(t, 3, func(t *testing.T, set func(*s3fs.Settings)) {
		timeout := func(s *s3fs.Settings) { set(s); s.SocketTimeout = 5 * time.Second }
		bubble(t, options{server: smallParts, settings: timeout}, func(t *testing.T, s store) {
			defer s.srv.Control(s3test.Match{Op: s3test.UploadPart, Part: 2, First: 2}, s3test.Always(s3test.Delay(60*time.Second)))()
			u, err := writeParts(t, s, "k", 3)
			require.NoError(t, err)
			require.NoError(t, u.Seal())
			_, err = u.Commit(s.ctx)
			require.NoError(t, err)
			o, ok := s.srv.Object("b", "k")
			require.True(t, ok)
			assert.True(t, bytes.Equal(text(3*64<<10), o.Data))
			assert.EqualValues(t, 2, s.Stats().Operations["UploadPart"].RetriesAfterTransient)
			time.Sleep(time.Minute) // what was delayed ends
		})
	})
}
