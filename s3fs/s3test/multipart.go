package s3test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// upload is a multipart upload in progress. The server's mutex guards it; parts never change, they are replaced.
type upload struct {
	id          string
	seq         int // order of making
	bucket, key string
	header      http.Header
	meta        map[string]string
	alg         *algorithm // declared at its creation; nil when nothing was
	kind        string     // FULL_OBJECT or COMPOSITE, with alg
	initiated   time.Time
	parts       map[int32]*part
}

type part struct {
	number   int32
	data     []byte
	etag     string
	sum      checksum
	modified time.Time
}

// sortedParts returns the parts by number. The mutex is held.
func (u *upload) sortedParts() []*part {
	out := make([]*part, 0, len(u.parts))
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		out = append(out, u.parts[n])
	}
	return out
}

// findUpload looks up an upload; an id belongs to one key. The mutex is held.
func (s *Server) findUpload(c *call) (*upload, *apiError) {
	if _, err := s.findBucket(c); err != nil {
		return nil, err
	}
	u := s.uploads[c.req.UploadID]
	if u == nil || u.bucket != c.req.Bucket || u.key != c.req.Key {
		return nil, noSuchUpload(c.req.UploadID)
	}
	return u, nil
}

// uploadName is the transcript's name of an upload id. The mutex is held.
func (s *Server) uploadName(id string) string {
	if n := s.ids[id]; n > 0 {
		return uploadNumber(n)
	}
	return "unknown"
}

func uploadNumber(n int) string { return "upload-" + strconv.Itoa(n) }

// newUploadID makes an id that looks like S3's, opaque and of no meaning, but is the same in every run. The mutex is held.
func (s *Server) newUploadID() (id, name string) {
	n := len(s.ids) + 1
	name = uploadNumber(n)
	sum := sha256.Sum256([]byte(name))
	id = base64.RawURLEncoding.EncodeToString(sum[:])
	s.ids[id] = n
	return id, name
}

// checksumType finds out which checksum the parts and the object are to have.
func (s *Server) checksumType(h http.Header) (alg *algorithm, kind string, err *apiError) {
	name, kind := h.Get("x-amz-checksum-algorithm"), h.Get("x-amz-checksum-type")
	switch {
	case s.o.Quirks.IgnoreChecksums:
		return nil, "", nil
	case name == "" && kind == "":
		return nil, "", nil
	case name == "":
		return nil, "", fault("InvalidRequest", "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
	}
	if alg = algorithmNamed(name); alg == nil {
		return nil, "", fault("InvalidRequest", "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]")
	}
	switch {
	case kind == "":
		kind = alg.usual
	case kind == fullObject && alg.mergeable, kind == composite && alg != crc64nvme:
	case kind == fullObject, kind == composite:
		return nil, "", fault("InvalidRequest", "The "+kind+" checksum type cannot be used with the "+alg.name+" checksum algorithm.")
	default:
		return nil, "", fault("InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
	}
	return alg, kind, nil
}

type createResult struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket, Key, UploadId string
}

func (s *Server) createUpload(c *call) (*response, *apiError) {
	if err := checkNew(c); err != nil {
		return nil, err
	}
	alg, kind, err := s.checksumType(c.req.Header)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findBucket(c); err != nil {
		return nil, err
	}
	id, name := s.newUploadID()
	c.req.Upload = name
	s.uploads[id] = &upload{
		id: id, seq: s.ids[id], bucket: c.req.Bucket, key: c.req.Key,
		header: keptHeaders(c.req.Header), meta: metadata(c.req.Header), alg: alg, kind: kind,
		initiated: time.Now().UTC().Truncate(time.Second), parts: map[int32]*part{},
	}
	return createResponse(c, id, alg, kind), nil
}

func createResponse(c *call, id string, alg *algorithm, kind string) *response {
	res := newResponse(http.StatusOK).xml(marshal(createResult{Bucket: c.req.Bucket, Key: c.req.Key, UploadId: id}))
	if alg != nil {
		res.header.Set("x-amz-checksum-algorithm", alg.name)
		res.header.Set("x-amz-checksum-type", kind)
	}
	return res
}

func (s *Server) uploadPart(c *call) (*response, *apiError) {
	if c.req.Part < 1 || int(c.req.Part) > s.o.MaxParts {
		return nil, invalidArgument("Part number must be an integer between 1 and "+strconv.Itoa(s.o.MaxParts)+", inclusive",
			"partNumber", c.req.Query.Get("partNumber"))
	}
	sum, given, err := s.verifySum(c)
	if err != nil {
		return nil, err
	}
	sum.kind = "" // a type is a property of objects
	p := &part{
		number: c.req.Part, data: c.body, etag: etagOf(c.body), sum: sum,
		modified: time.Now().UTC().Truncate(time.Second),
	}
	s.mu.Lock()
	u, err := s.findUpload(c)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := u.accept(p, given); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, err = s.findUpload(c); err != nil { // it may have ended meanwhile
		return nil, err
	}
	u.parts[p.number] = p
	res := newResponse(http.StatusOK)
	res.header.Set("ETag", quoted(p.etag))
	p.sum.set(res.header)
	return res, nil
}

// accept makes the part's checksum fit the upload's declaration, which never changes. A full-object upload computes what
// the client leaves out; a composite one has to be told every part's checksum.
func (u *upload) accept(p *part, given bool) *apiError {
	switch {
	case u.alg == nil || p.sum.alg == u.alg && (given || u.kind == fullObject):
		return nil
	case given:
		return wrongAlgorithm(u.alg.name, p.sum.name())
	case u.kind == composite:
		return wrongAlgorithm(u.alg.name, "null")
	}
	p.sum = checksum{alg: u.alg, value: u.alg.sum64(p.data)}
	return nil
}

func wrongAlgorithm(want, got string) *apiError {
	return fault("InvalidRequest", "Checksum Type mismatch occurred, expected checksum Type: "+want+", actual checksum Type: "+got)
}

func (s *Server) abortUpload(c *call) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.findUpload(c)
	if err != nil {
		return nil, err
	}
	delete(s.uploads, u.id)
	return newResponse(http.StatusNoContent), nil
}
