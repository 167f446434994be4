package sink_test

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
	"github.com/sluice-go/sluice/sink"
)

// many files are more than are looked at one by one.
const many = 40

// manyFiles are options with which each row of the returned size makes a file: of two parts, or sent by PUT.
func manyFiles(parts bool) (o sink.Options, size int) {
	o = options()
	o.Writers, o.MemoryBudget, o.PartSize, o.Rolling.FileSize, size = 1, 32<<20, 4<<10, 1, 1023
	if parts {
		size = 6 << 10
	}
	return o, size
}

func bothKinds(t *testing.T, f func(t *testing.T, w *world, o sink.Options, size int)) {
	for name, parts := range map[string]bool{"parts": true, "put": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				o, size := manyFiles(parts)
				f(t, w, o, size)
			})
		})
	}
}

// callsOf counts the store calls of f.
func (w *world) callsOf(f func()) string {
	count := func() (n [4]int) {
		c := w.store.Counts()
		for i, op := range []s3test.Op{s3test.HeadObject, s3test.ListObjectsV2, s3test.CompleteMultipartUpload, s3test.PutObject} {
			n[i] = c.Total(op)
		}
		return n
	}
	before := count()
	f()
	after := count()
	return fmt.Sprintf("HEAD %d, LIST %d, Complete %d, PUT %d",
		after[0]-before[0], after[1]-before[1], after[2]-before[2], after[3]-before[3])
}

// The last PUT is the commit record's.
func TestBulkProof_AHundredFilesCostAHundredHEADsOrOneLIST(t *testing.T) {
	want := map[string]string{
		"put, HEAD":   "HEAD 100, LIST 0, Complete 0, PUT 101",
		"put, LIST":   "HEAD 0, LIST 1, Complete 0, PUT 101",
		"parts, HEAD": "HEAD 40, LIST 0, Complete 40, PUT 1",
		"parts, LIST": "HEAD 0, LIST 1, Complete 40, PUT 1",
	}
	for name, calls := range want {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				parts, files := strings.HasPrefix(name, "parts"), 100
				if parts {
					files = many
				}
				o, size := manyFiles(parts)
				if strings.HasSuffix(name, "HEAD") {
					o.ListThreshold = -1
				}
				r := w.start(o)
				r.rows(0, files, size)
				require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
				require.Equal(t, calls, w.callsOf(r.checkpoint))
				w.requireRows(files)
				r.finish()
			})
		})
	}
}

func TestBulkProof_FewFilesAreLookedAtOneByOne(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *world, o sink.Options, size int) {
		r := w.start(o)
		r.rows(0, 15, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		require.Contains(t, w.callsOf(r.checkpoint), "HEAD 15, LIST 0")
		r.finish()
	})
}

// Each page is asked for where the next unproven file is, and a page that proves too few is the last.
func TestBulkProof_PagesAreBoundedWhateverElseIsInTheBucket(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o, size := manyFiles(false)
		o.ListThreshold = 40
		for i := range 1000 { // of an earlier time, all between the names of files 19 and 2
			w.store.PutObject("data", fmt.Sprintf("out/part_main_0-of-1_e1_w0_1x%d.raw", i), nil, nil)
		}
		r := w.start(o)
		r.rows(0, 100, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		// The first page, of 200 names, shows files 0, 1 and 10 to 19.
		require.Contains(t, w.callsOf(r.checkpoint), "HEAD 88, LIST 1")
		require.Zero(t, r.sink.Stats().PendingFiles)
		r.crash()
	})
}

func TestBulkProof_ManyPages(t *testing.T) {
	w := newWorldOn(t, s3test.Options{PageSize: 30})
	o, size := manyFiles(false)
	r := w.start(o)
	r.rows(0, 100, size)
	require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
	// Three full pages; the ten files that are left are too few for one more.
	require.Contains(t, w.callsOf(r.checkpoint), "HEAD 10, LIST 3")
	w.requireRows(100)
	r.finish()
}

// backwards is a store that lists from the last name of a page to the first, as those do whose indexes are not sorted, and does not know
// where a page begins.
type backwards struct {
	http.RoundTripper
	pages int
}

var xmlObject = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

func (b *backwards) RoundTrip(q *http.Request) (*http.Response, error) {
	listing := q.Method == http.MethodGet && strings.HasPrefix(q.URL.Query().Get("prefix"), "out/part")
	a, err := b.RoundTripper.RoundTrip(q)
	if err != nil || !listing {
		return a, err
	}
	if b.pages++; b.pages > 10 {
		return nil, errors.New("the listing goes in circles")
	}
	body, err := io.ReadAll(a.Body)
	if err = errors.Join(err, a.Body.Close()); err != nil {
		return nil, err
	}
	objects := xmlObject.FindAllString(string(body), -1)
	body = xmlObject.ReplaceAllFunc(body, func([]byte) []byte {
		last := objects[len(objects)-1]
		objects = objects[:len(objects)-1]
		return []byte(last)
	})
	a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	a.Header.Set("Content-Length", fmt.Sprint(len(body)))
	return a, nil
}

func TestBulkProof_AListingInAnotherOrderEnds(t *testing.T) {
	w := newWorldOn(t, s3test.Options{PageSize: 18})
	b := &backwards{}
	w.wrap = func(t http.RoundTripper) http.RoundTripper {
		b.RoundTripper = t
		return b
	}
	o, size := manyFiles(false)
	r := w.start(o)
	r.rows(0, many, size)
	require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
	r.checkpoint()
	require.LessOrEqual(t, b.pages, many/16+1)
	w.requireRows(many)
	r.finish()
}

// The store answers every fifth file with success and its ETag, and has nothing.
func TestBulkProof_A200WithNoObjectIsCaught(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *world, o sink.Options, size int) {
		r := w.start(o)
		op := s3test.PutObject
		if size > 4<<10 {
			op = s3test.CompleteMultipartUpload
		}
		remove := w.store.Control(s3test.Match{Op: op, KeyPrefix: "out/part", Every: 5}, s3test.Always(s3test.DropEffect200()))
		r.rows(0, many, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		_, err := r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, multipart.ErrMissing)
		require.Equal(t, many/5, r.sink.Stats().PendingFiles)
		require.Len(t, w.published(), many*4/5)
		remove()
		r.finish()
		w.requireRows(many)
	})
}

// Somebody replaces every fifth object between its Complete and the proof: by other bytes of the same size, or by the same bytes sent in
// another way.
func TestBulkProof_AnObjectReplacedByAForeignOneIsCaught(t *testing.T) {
	for _, same := range []bool{false, true} {
		bothKinds(t, func(t *testing.T, w *world, o sink.Options, size int) {
			if same && size < 4<<10 {
				return // see the next test
			}
			r := w.start(o)
			replaced := 0
			w.store.Control(s3test.Match{Op: s3test.ListObjectsV2, Nth: 1}, func(s3test.Request) *s3test.Reply {
				for i, key := range w.dataKeys() {
					if i%5 > 0 {
						continue
					}
					object, _ := w.store.Object("data", key)
					data := bytes.Clone(object.Data)
					if !same {
						data[0] ^= 1
					}
					w.store.PutObject("data", key, data, nil)
					replaced++
				}
				return nil
			})
			r.rows(0, many, size)
			require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
			_, err := r.coord.Trigger(t.Context())
			require.ErrorIs(t, err, multipart.ErrForeign)
			require.Equal(t, many/5, replaced)
			require.Equal(t, many/5, r.sink.Stats().PendingFiles)
			require.Len(t, w.records()[0].Files, many*4/5)
			r.crash()
		})
	}
}

// The one thing that a listing does not tell: another object with the very same bytes in the same layout, put over ours after the store had
// acknowledged it. What the record then says of the key is true all the same.
func TestBulkProof_TheSameBytesInTheSameLayoutAreTheFile(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		o, size := manyFiles(false)
		r := w.start(o)
		w.store.Control(s3test.Match{Op: s3test.ListObjectsV2, Nth: 1}, func(s3test.Request) *s3test.Reply {
			key := w.dataKeys()[0]
			object, _ := w.store.Object("data", key)
			w.store.PutObject("data", key, object.Data, nil)
			return nil
		})
		r.rows(0, many, size)
		r.finish()
		w.requireRows(many)
	})
}

// opaque is a store whose objects have ETags that are no MD5s, as under SSE-KMS: 32 digits that depend on anything.
type opaque struct{ http.RoundTripper }

var xmlETag = regexp.MustCompile(`<ETag>[^<]*</ETag>`)

func (o opaque) RoundTrip(q *http.Request) (*http.Response, error) {
	a, err := o.RoundTripper.RoundTrip(q)
	if err != nil || q.URL.Query().Has("partNumber") {
		return a, err
	}
	return withETag(a, `"d41d8cd98f00b204e9800998ecf8427e"`)
}

// withETag replaces every ETag of an answer.
func withETag(a *http.Response, other string) (*http.Response, error) {
	if a.Header.Get("ETag") != "" {
		a.Header.Set("ETag", other)
	}
	if strings.Contains(a.Header.Get("Content-Type"), "xml") {
		body, err := io.ReadAll(a.Body)
		if err = errors.Join(err, a.Body.Close()); err != nil {
			return nil, err
		}
		body = xmlETag.ReplaceAll(body, []byte("<ETag>"+other+"</ETag>"))
		a.Body, a.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		a.Header.Set("Content-Length", fmt.Sprint(len(body)))
	}
	return a, nil
}

func TestBulkProof_ETagsThatAreNoMD5sFallBackToHEAD(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *world, o sink.Options, size int) {
		w.wrap = func(t http.RoundTripper) http.RoundTripper { return opaque{t} }
		r := w.start(o)
		r.rows(0, many, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		require.Contains(t, w.callsOf(r.checkpoint), "HEAD 40, LIST 0")
		w.requireRows(many)
		r.finish()
	})
}

// constant is a store that gives every part the same ETag, and every object the one that follows from its parts: it is not wrong about a
// single file, and tells none from another.
type constant struct {
	http.RoundTripper
	mu    sync.Mutex
	parts map[string]string // upload and part -> the ETag in the store behind it
}

var xmlPart = regexp.MustCompile(`<ETag>[^<]*</ETag>|<PartNumber>\d+</PartNumber>`)

func (c *constant) RoundTrip(q *http.Request) (*http.Response, error) {
	const part = "00000000000000000000000000000000"
	whole := fmt.Sprintf("%x-2", md5.Sum(make([]byte, 32)))
	query := q.URL.Query()
	if q.Method == http.MethodPost && query.Has("uploadId") {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		n := 0
		body = xmlPart.ReplaceAllFunc(body, func(element []byte) []byte {
			if !bytes.HasPrefix(element, []byte("<ETag>")) {
				return element
			}
			n++
			c.mu.Lock()
			defer c.mu.Unlock()
			return []byte("<ETag>" + c.parts[query.Get("uploadId")+fmt.Sprint(n)] + "</ETag>")
		})
		q = q.Clone(q.Context())
		q.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	a, err := c.RoundTripper.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if query.Has("partNumber") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.parts[query.Get("uploadId")+query.Get("partNumber")] = a.Header.Get("ETag")
		a.Header.Set("ETag", `"`+part+`"`)
		return a, nil
	}
	return withETag(a, `"`+whole+`"`)
}

func TestBulkProof_ETagsThatTellNoFileFromAnotherFallBackToHEAD(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.wrap = func(t http.RoundTripper) http.RoundTripper {
			return &constant{RoundTripper: t, parts: map[string]string{}}
		}
		o, size := manyFiles(true)
		r := w.start(o)
		r.rows(0, many, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		require.Contains(t, w.callsOf(r.checkpoint), "HEAD 40, LIST 0, Complete 40")
		w.requireRows(many)
		r.finish()
	})
}

func TestBulkProof_AListingThatIsDeniedFallsBackToHEAD(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *world, o sink.Options, size int) {
		r := w.start(o)
		w.store.Control(s3test.Match{Op: s3test.ListObjectsV2}, s3test.Always(s3test.Status(403, "AccessDenied")))
		r.rows(0, many, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		require.Contains(t, w.callsOf(r.checkpoint), "HEAD 40, LIST 1")
		w.requireRows(many)
		r.finish()
	})
}

// Published by a run that died before it could write the record: who publishes them again looks first.
func TestBulkProof_AfterARestartFilesThatAreThereAreLookedAt(t *testing.T) {
	bothKinds(t, func(t *testing.T, w *world, o sink.Options, size int) {
		r := w.start(o)
		remove := w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "out/_sluice"}, s3test.Always(s3test.Status(403, "AccessDenied")))
		r.rows(0, many, size)
		require.NoError(t, r.coord.Step(t.Context(), r.sink.Seal))
		_, err := r.coord.Trigger(t.Context())
		require.ErrorIs(t, err, s3fs.ErrAccessDenied)
		r.crash()
		remove()
		calls := w.callsOf(func() { r = w.start(o) })
		require.Equal(t, "HEAD 40, LIST 1, Complete 0, PUT 1", calls, "the LIST is that of the records")
		w.requireRows(many)
		r.finish()
	})
}
