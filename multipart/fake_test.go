package multipart_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/multipart"
)

// nvme is a second implementation of the checksum: the standard library's, with the polynomial of the NVM Express
// specification.
var nvme = crc64.MakeTable(0x9a6c9329ac4bc9b5)

func crcOf(p []byte) multipart.CRC { return multipart.CRC(crc64.Checksum(p, nvme)) }

func md5Of(p []byte) string {
	sum := md5.Sum(p)
	return hex.EncodeToString(sum[:])
}

type object struct {
	data         []byte
	etag, token  string
	crc          multipart.CRC
	hasCRC       bool
	lastModified time.Time
}

type upload struct {
	target multipart.Target
	token  string
	parts  map[int32]object
}

// store is an in-memory object store that checks what it is sent and does what it is told.
type store struct {
	mu      sync.Mutex
	objects map[string]object
	uploads map[string]*upload
	rules   []*rule
	log     []string
	aborts  int
	bodies  []io.Reader
	sending int // part uploads under way
	most    int // the most there were at a time

	noCRC  bool // HEAD gives no checksum
	opaque bool // ETags are no MD5, as under SSE-KMS
	claims bool // Complete and Put answer with the ETag that the object has, or would have
}

var _ multipart.API = (*store)(nil)

func newStore() *store {
	return &store{objects: map[string]object{}, uploads: map[string]*upload{}}
}

func (s *store) Create(ctx context.Context, t multipart.Target, token string) (string, error) {
	run, answer := s.enter(ctx, "create", 0, "create "+t.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	var id string
	if run {
		id = fmt.Sprintf("up%d", len(s.uploads)+1)
		s.uploads[id] = &upload{target: t, token: token, parts: map[int32]object{}}
	}
	if err := answer(nil); err != nil {
		return "", err
	}
	return id, nil
}

func (s *store) UploadPart(ctx context.Context, t multipart.Target, id string, n int32, body io.ReadSeeker, size int64, crc multipart.CRC) (string, error) {
	s.mu.Lock()
	s.sending++
	s.most = max(s.most, s.sending)
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.sending--
		s.mu.Unlock()
	}()
	run, answer := s.enter(ctx, "part", n, fmt.Sprintf("part %s %s #%d %d bytes", t.Key, id, n, size))
	if !run {
		if err := answer(nil); err != nil {
			return "", err
		}
		return "lie", nil
	}
	o, err := s.receive(body, size, crc)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	up := s.uploads[id]
	if up == nil || up.target != t {
		return "", answer(multipart.ErrNoSuchUpload)
	}
	up.parts[n] = o
	if err := answer(nil); err != nil {
		return "", err
	}
	return `"` + o.etag + `"`, nil
}

// receive reads a body twice, as a client that retries does, and checks it against what was declared.
func (s *store) receive(body io.ReadSeeker, size int64, crc multipart.CRC) (object, error) {
	if _, err := io.CopyN(io.Discard, body, min(size, 3)); err != nil {
		return object{}, fmt.Errorf("first attempt: %w", err)
	}
	if at, err := body.Seek(0, io.SeekStart); err != nil || at != 0 {
		return object{}, fmt.Errorf("seek: %d, %w", at, err)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return object{}, fmt.Errorf("body: %w", err)
	}
	if int64(len(data)) != size || crcOf(data) != crc {
		return object{}, fmt.Errorf("bad digest: %d bytes of %d", len(data), size)
	}
	etag := md5Of(data)
	if s.opaque {
		etag = fmt.Sprintf("opaque-%d", time.Now().UnixNano())
	}
	return object{data: data, etag: etag, crc: crc, hasCRC: true}, nil
}

func (s *store) Complete(ctx context.Context, t multipart.Target, id string, parts []multipart.Part, size int64, crc multipart.CRC) (multipart.Object, error) {
	run, answer := s.enter(ctx, "complete", 0, fmt.Sprintf("complete %s %s %d parts %d bytes", t.Key, id, len(parts), size))
	s.mu.Lock()
	defer s.mu.Unlock()
	if run {
		if err := s.complete(t, id, parts, size, crc); err != nil {
			return multipart.Object{}, answer(err)
		}
	}
	out := multipart.Object{ETag: "claimed"}
	if s.claims {
		out.ETag = etagOf(parts)
	}
	return out, answer(nil)
}

// etagOf is a second implementation of the ETag of an object made of parts.
func etagOf(parts []multipart.Part) string {
	var sums []byte
	for _, p := range parts {
		b, _ := hex.DecodeString(p.ETag)
		sums = append(sums, b...)
	}
	return fmt.Sprintf("%s-%d", md5Of(sums), len(parts))
}

func (s *store) complete(t multipart.Target, id string, parts []multipart.Part, size int64, crc multipart.CRC) error {
	up := s.uploads[id]
	if up == nil || up.target != t {
		return multipart.ErrNoSuchUpload
	}
	var whole, sums []byte
	for i, p := range parts {
		got, ok := up.parts[p.Number]
		switch {
		case !ok || got.etag != p.ETag || got.crc != p.CRC || int64(len(got.data)) != p.Size:
			return fmt.Errorf("invalid part %d", p.Number)
		case int(p.Number) != i+1:
			return errors.New("invalid part order")
		case i > 0 && i < len(parts)-1 && p.Size != parts[0].Size:
			return errors.New("parts of unequal size")
		}
		whole = append(whole, got.data...)
		b, _ := hex.DecodeString(got.etag)
		sums = append(sums, b...)
	}
	if int64(len(whole)) != size || crcOf(whole) != crc {
		return errors.New("bad digest of the whole")
	}
	etag := fmt.Sprintf("%s-%d", md5Of(sums), len(parts))
	if s.opaque {
		etag = "opaque"
	}
	s.objects[t.Key] = object{data: whole, etag: etag, token: up.token, crc: crc, hasCRC: true}
	delete(s.uploads, id)
	s.uploads["gone-"+id] = &upload{} // ids are never used twice
	return nil
}

func (s *store) Abort(_ context.Context, t multipart.Target, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborts++
	s.log = append(s.log, "abort "+t.Key+" "+id)
	delete(s.uploads, id)
	s.uploads["gone-"+id] = &upload{}
	return nil
}

func (s *store) ListParts(ctx context.Context, t multipart.Target, id string) ([]multipart.Part, error) {
	run, answer := s.enter(ctx, "list", 0, fmt.Sprintf("list %s %s", t.Key, id))
	s.mu.Lock()
	defer s.mu.Unlock()
	up := s.uploads[id]
	if !run {
		return nil, answer(nil)
	}
	if up == nil || up.target != t {
		return nil, answer(multipart.ErrNoSuchUpload)
	}
	var parts []multipart.Part
	for n, p := range up.parts {
		parts = append(parts, multipart.Part{Number: n, Size: int64(len(p.data)), ETag: `"` + p.etag + `"`, CRC: p.crc})
	}
	slices.SortFunc(parts, func(a, b multipart.Part) int { return int(a.Number - b.Number) })
	return parts, answer(nil)
}

func (s *store) Put(ctx context.Context, t multipart.Target, token string, body io.ReadSeeker, size int64, crc multipart.CRC) (multipart.Object, error) {
	run, answer := s.enter(ctx, "put", 0, fmt.Sprintf("put %s %d bytes", t.Key, size))
	o, err := s.receive(body, size, crc)
	if err != nil {
		return multipart.Object{}, err
	}
	if run {
		o.token = token
		s.mu.Lock()
		s.objects[t.Key] = o
		s.mu.Unlock()
	}
	var out multipart.Object
	if s.claims {
		out.ETag = o.etag
	}
	return out, answer(nil)
}

func (s *store) Head(ctx context.Context, t multipart.Target) (multipart.Object, error) {
	run, answer := s.enter(ctx, "head", 0, "head "+t.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[t.Key]
	if !run || !ok {
		return multipart.Object{}, answer(multipart.ErrNotFound)
	}
	out := multipart.Object{Size: int64(len(o.data)), ETag: `"` + o.etag + `"`, Token: o.token, LastModified: o.lastModified}
	if o.hasCRC && !s.noCRC {
		out.CRC, out.HasCRC = o.crc, true
	}
	return out, answer(nil)
}

// hideCRC makes HEAD give no checksum.
func (s *store) hideCRC() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noCRC = true
}

// content returns the object's bytes, false when nothing is visible.
func (s *store) content(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o.data, ok
}

func (s *store) visible() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

func (s *store) set(key string, o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = o
}

// drop makes an upload go away, as a lifecycle rule does.
func (s *store) drop(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uploads, id)
	s.uploads["gone-"+id] = &upload{}
}

func (s *store) calls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, line := range s.log {
		if strings.HasPrefix(line, op+" ") {
			n++
		}
	}
	return n
}

// takeLog returns the calls since the last takeLog.
func (s *store) takeLog() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}
