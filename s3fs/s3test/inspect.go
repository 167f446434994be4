package s3test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Object is what the server holds under a key.
type Object struct {
	Key  string
	ETag string // without quotes
	// Data are the bytes. They are shared with the server and must not be changed; the server does not change them either.
	Data         []byte
	Metadata     map[string]string // names in lower case, without x-amz-meta-
	ContentType  string
	LastModified time.Time
	Checksum     Checksum
	// PartSizes are the sizes of the parts of a multipart object, nil for others.
	PartSizes []int64
}

// Checksum is a stored checksum. The zero value means none.
type Checksum struct {
	Algorithm string // "CRC64NVME" and so on
	Type      string // "FULL_OBJECT" or "COMPOSITE"; empty for parts
	Value     string // base64
}

// Upload is a multipart upload that has neither been completed nor aborted.
type Upload struct {
	ID   string // what the client holds
	Name string // what the transcript says: upload-1, ...
	Key  string

	Metadata  map[string]string
	Algorithm string // declared at its creation, or empty
	Type      string
	Initiated time.Time
	Parts     []Part // by number
}

// Part is one part of an [Upload]. Data are shared with the server and must not be changed.
type Part struct {
	Number   int32
	Data     []byte
	ETag     string // without quotes
	Checksum Checksum
}

func (c checksum) public() Checksum {
	return Checksum{Algorithm: c.name(), Type: c.kind, Value: c.value}
}

func (o *object) public(key string) Object {
	return Object{
		Key: key, ETag: o.etag, Data: o.data, Metadata: maps.Clone(o.meta), ContentType: o.header.Get("Content-Type"),
		LastModified: o.modified, Checksum: o.sum.public(), PartSizes: slices.Clone(o.parts),
	}
}

// Object returns what is stored under the key, and whether anything is.
func (s *Server) Object(bucket, key string) (Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil || b.objects[key] == nil {
		return Object{}, false
	}
	return b.objects[key].public(key), true
}

// Objects returns all objects of the bucket, sorted by key; nil when there is no such bucket.
func (s *Server) Objects(bucket string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil {
		return nil
	}
	out := make([]Object, 0, len(b.objects))
	for _, key := range b.keys() {
		out = append(out, b.objects[key].public(key))
	}
	return out
}

// Keys returns the keys of all objects of the bucket, sorted.
func (s *Server) Keys(bucket string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil {
		return nil
	}
	return slices.Clone(b.keys())
}

// Uploads returns the bucket's multipart uploads in progress, in the order of their creation.
func (s *Server) Uploads(bucket string) []Upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*upload
	for _, u := range s.uploads {
		if u.bucket == bucket {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *upload) int { return cmp.Compare(a.seq, b.seq) })
	out := make([]Upload, 0, len(found))
	for _, u := range found {
		pub := Upload{
			ID: u.id, Name: uploadNumber(u.seq), Key: u.key, Metadata: maps.Clone(u.meta), Type: u.kind, Initiated: u.initiated,
		}
		if u.alg != nil {
			pub.Algorithm = u.alg.name
		}
		for _, p := range u.sortedParts() {
			pub.Parts = append(pub.Parts, Part{Number: p.number, Data: p.data, ETag: p.etag, Checksum: p.sum.public()})
		}
		out = append(out, pub)
	}
	return out
}

// DropUpload forgets an upload and its parts, as a lifecycle rule of the bucket or somebody else's abort does. It takes an
// upload id or a transcript name, and reports whether there was such an upload.
func (s *Server) DropUpload(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uploads {
		if u.id == id || uploadNumber(u.seq) == id {
			delete(s.uploads, u.id)
			return true
		}
	}
	return false
}

// CreateBucket makes a bucket without a request. An existing one stays as it is.
func (s *Server) CreateBucket(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] == nil {
		s.buckets[name] = newBucket()
	}
}

// PutObject plants an object without a request, say one that somebody else has written. The bucket is made if it is
// missing; an object under the same key is replaced. The data are copied. Metadata names are put in lower case.
func (s *Server) PutObject(bucket, key string, data []byte, meta map[string]string) {
	h := http.Header{}
	for k, v := range meta {
		h.Set("x-amz-meta-"+strings.ToLower(k), v)
	}
	var sum checksum
	if !s.o.Quirks.IgnoreChecksums {
		sum = checksum{alg: crc64nvme, value: crc64nvme.sum64(data), kind: fullObject}
	}
	o := newObject(slices.Clone(data), h, sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[bucket] == nil {
		s.buckets[bucket] = newBucket()
	}
	s.buckets[bucket].put(key, o)
}

// DeleteObject removes an object without a request, as a consumer that moves files away does. It reports whether there
// was one.
func (s *Server) DeleteObject(bucket, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[bucket]
	if b == nil || b.objects[key] == nil {
		return false
	}
	b.remove(key)
	return true
}
