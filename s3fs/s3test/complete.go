package s3test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

type completeRequest struct {
	XMLName xml.Name        `xml:"CompleteMultipartUpload"`
	Parts   []completedPart `xml:"Part"`
}

type completedPart struct {
	PartNumber        int32
	ETag              string
	ChecksumCRC32     string
	ChecksumCRC32C    string
	ChecksumCRC64NVME string
	ChecksumSHA1      string
	ChecksumSHA256    string
}

// sums returns the checksums that a part is listed with, by algorithm name.
func (p completedPart) sums() map[string]string {
	return map[string]string{
		"CRC32": p.ChecksumCRC32, "CRC32C": p.ChecksumCRC32C, "CRC64NVME": p.ChecksumCRC64NVME,
		"SHA1": p.ChecksumSHA1, "SHA256": p.ChecksumSHA256,
	}
}

type completeResult struct {
	XMLName                     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
	Location, Bucket, Key, ETag string
	checksumFields
	ChecksumType string `xml:",omitempty"`
}

// checksumFields are the elements that carry a checksum in listings and results.
type checksumFields struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
}

func (c checksum) fields() checksumFields {
	var f checksumFields
	switch c.name() {
	case "CRC32":
		f.ChecksumCRC32 = c.value
	case "CRC32C":
		f.ChecksumCRC32C = c.value
	case "CRC64NVME":
		f.ChecksumCRC64NVME = c.value
	case "SHA1":
		f.ChecksumSHA1 = c.value
	case "SHA256":
		f.ChecksumSHA256 = c.value
	}
	return f
}

// completion remembers a Complete that succeeded, for its repetition.
type completion struct {
	bucket, key string
	parts       []completedPart
	body        []byte
}

// readComplete parses the part list, whose order and length need no knowledge of the upload.
func readComplete(c *call) *apiError {
	var req completeRequest
	if err := parseXML(c.body, &req); err != nil {
		return err
	}
	c.parts = req.Parts
	if len(c.parts) == 0 || len(c.parts) > defaultMaxParts {
		return malformedXML()
	}
	for i := range c.parts {
		c.parts[i].ETag = strings.Trim(c.parts[i].ETag, `"`)
		if i > 0 && c.parts[i].PartNumber <= c.parts[i-1].PartNumber {
			return fault("InvalidPartOrder", "The list of parts was not in ascending order. The parts list must be specified in order by part number.", "UploadId", c.req.UploadID)
		}
	}
	return nil
}

// completeUpload puts the parts together. Joining and checking the bytes takes long, so it happens outside the mutex on a
// plan made under it, and the plan is made again under the mutex that publishes the object: if the upload has changed
// in between, everything starts over.
func (s *Server) completeUpload(c *call) (*response, *apiError) {
	for {
		s.mu.Lock()
		u, parts, done, err := s.plan(c)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if done != nil {
			return newResponse(http.StatusOK).xml(done), nil
		}
		o, err := s.join(c, u, parts)
		if err != nil {
			return nil, err
		}
		if res, err := s.publish(c, parts, o); res != nil || err != nil {
			return res, err
		}
	}
}

// publish makes the object visible if the plan still holds; it returns nothing when it does not.
func (s *Server) publish(c *call, parts []*part, o *object) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, now, done, err := s.plan(c)
	if err != nil {
		return nil, err
	}
	if done != nil {
		return newResponse(http.StatusOK).xml(done), nil
	}
	if !slices.Equal(now, parts) {
		return nil, nil
	}
	s.buckets[c.req.Bucket].put(c.req.Key, o)
	delete(s.uploads, u.id)
	out := completeResult{
		Location: s.url + "/" + c.req.Bucket + "/" + c.req.Key, Bucket: c.req.Bucket, Key: c.req.Key, ETag: quoted(o.etag),
		checksumFields: o.sum.fields(), ChecksumType: o.sum.kind,
	}
	body := marshal(out)
	s.completed[u.id] = completion{bucket: c.req.Bucket, key: c.req.Key, parts: c.parts, body: body}
	return newResponse(http.StatusOK).xml(body), nil
}

// plan finds the parts a Complete names and checks everything but their bytes. For the repetition of a Complete that
// succeeded, it returns the earlier answer instead. The mutex is held.
func (s *Server) plan(c *call) (u *upload, parts []*part, done []byte, err *apiError) {
	if u, err = s.findUpload(c); err != nil {
		before, ok := s.completed[c.req.UploadID]
		same := ok && before.bucket == c.req.Bucket && before.key == c.req.Key && slices.Equal(before.parts, c.parts)
		if !same || s.o.Quirks.CompleteRepeat404 || err.code != "NoSuchUpload" {
			return nil, nil, nil, err
		}
		done = before.body
	}
	if err := s.buckets[c.req.Bucket].writeAllowed(c); err != nil {
		return nil, nil, nil, err
	}
	if done != nil {
		return nil, nil, done, nil
	}
	for i, want := range c.parts {
		p, err := s.named(u, want)
		if err != nil {
			return nil, nil, nil, err
		}
		if size := int64(len(p.data)); i < len(c.parts)-1 && size < s.o.MinPartSize {
			return nil, nil, nil, fault("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size",
				"ProposedSize", strconv.FormatInt(size, 10), "MinSizeAllowed", strconv.FormatInt(s.o.MinPartSize, 10),
				"PartNumber", strconv.Itoa(int(p.number)), "ETag", p.etag)
		}
		parts = append(parts, p)
	}
	return u, parts, nil, nil
}

// named finds the part that one entry of the list means.
func (s *Server) named(u *upload, want completedPart) (*part, *apiError) {
	p := u.parts[want.PartNumber]
	if p == nil || p.etag != want.ETag {
		return nil, invalidPart(u, want)
	}
	if s.o.Quirks.IgnoreChecksums {
		return p, nil
	}
	listed := false
	for name, value := range want.sums() {
		if value == "" {
			continue
		}
		listed = true
		if name != p.sum.name() || value != p.sum.value || u.alg == nil && p.sum.alg != crc64nvme {
			return nil, invalidPart(u, want)
		}
	}
	if !listed && u.kind == composite {
		alg := strings.ToLower(u.alg.name)
		return nil, fault("InvalidRequest", fmt.Sprintf("The upload was created using a %s checksum. The complete request must include the checksum for each part. It was missing for part %d in the request.", alg, want.PartNumber))
	}
	return p, nil
}

func invalidPart(u *upload, p completedPart) *apiError {
	return fault("InvalidPart", "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
		"UploadId", u.id, "PartNumber", strconv.Itoa(int(p.PartNumber)), "ETag", p.ETag)
}

// join builds the object and checks it against what the client says about the whole.
func (s *Server) join(c *call, u *upload, parts []*part) (*object, *apiError) {
	data := make([][]byte, len(parts))
	sizes := make([]int64, len(parts))
	etags := make([]string, len(parts))
	for i, p := range parts {
		data[i], sizes[i], etags[i] = p.data, int64(len(p.data)), p.etag
	}
	o := &object{
		data: bytes.Join(data, nil), etag: multipartETag(etags), header: u.header, meta: u.meta,
		modified: time.Now().UTC().Truncate(time.Second), parts: sizes,
	}
	if s.o.Quirks.IgnoreChecksums {
		return o, nil
	}
	if v := c.req.Header.Get("x-amz-mp-object-size"); v != "" && v != strconv.Itoa(len(o.data)) {
		return nil, fault("InvalidRequest", "The provided 'x-amz-mp-object-size' header does not match what was computed: "+strconv.Itoa(len(o.data))+".")
	}
	o.sum = checksum{alg: crc64nvme, kind: fullObject}
	if u.alg != nil {
		o.sum = checksum{alg: u.alg, kind: u.kind}
	}
	if o.sum.kind == composite {
		o.sum.value = compositeSum(u.alg, parts)
	} else {
		o.sum.value = o.sum.alg.sum64(o.data)
	}
	return o, claimHolds(c, o.sum)
}

// claimHolds compares the checksum the client states for the whole object with the computed one.
func claimHolds(c *call, sum checksum) *apiError {
	if kind := c.req.Header.Get("x-amz-checksum-type"); kind != "" && kind != sum.kind {
		return fault("BadDigest", "The checksum type "+kind+" does not match the upload's, "+sum.kind+".")
	}
	alg, want, err := c.announcedSum()
	switch {
	case err != nil:
		return err
	case alg == nil:
		return nil
	case alg != sum.alg:
		return wrongAlgorithm(sum.name(), alg.name)
	}
	plain, _, _ := strings.Cut(sum.value, "-")
	if want != sum.value && want != plain {
		return badDigest(alg.name)
	}
	return nil
}

// multipartETag is the MD5 of the parts' MD5s and their number.
func multipartETag(etags []string) string {
	h := md5.New()
	for _, e := range etags {
		raw, err := hex.DecodeString(e)
		if err != nil {
			raw = []byte(e) // only a lie is made of ETags that are none
		}
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)) + "-" + strconv.Itoa(len(etags))
}
