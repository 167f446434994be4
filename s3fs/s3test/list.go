package s3test

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// listTime is how listings write times.
const listTime = "2006-01-02T15:04:05.000Z"

type listing struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name, Prefix          string
	Delimiter             string `xml:",omitempty"`
	StartAfter            string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	KeyCount, MaxKeys     int
	IsTruncated           bool
	Contents              []listedObject
	CommonPrefixes        []commonPrefix
}

type listedObject struct {
	Key, LastModified, ETag string
	ChecksumAlgorithm       string `xml:",omitempty"`
	ChecksumType            string `xml:",omitempty"`
	Size                    int
	StorageClass            string
}

type commonPrefix struct{ Prefix string }

// encoder returns how keys are written: as they are, or as encoding-type=url has it.
func encoder(q url.Values) (func(string) string, *apiError) {
	switch v := q.Get("encoding-type"); v {
	case "":
		return func(s string) string { return s }, nil
	case "url":
		return func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "%2F", "/") }, nil
	default:
		return nil, invalidArgument("Invalid Encoding Method specified in Request", "encoding-type", v)
	}
}

// limit reads max-keys and its relatives.
func (s *Server) limit(q url.Values, name string) (int, *apiError) {
	v := q.Get(name)
	if v == "" {
		return s.o.PageSize, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, invalidArgument("Provided "+name+" not an integer or within integer range", name, v)
	}
	return min(n, s.o.PageSize), nil
}

func (s *Server) listObjects(c *call) (*response, *apiError) {
	q := c.req.Query
	encode, err := encoder(q)
	if err != nil {
		return nil, err
	}
	limit, err := s.limit(q, "max-keys")
	if err != nil {
		return nil, err
	}
	after, err := position(q)
	if err != nil {
		return nil, err
	}
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	out := listing{
		Name: c.req.Bucket, Prefix: encode(prefix), Delimiter: encode(delimiter), StartAfter: encode(q.Get("start-after")),
		EncodingType: q.Get("encoding-type"), ContinuationToken: q.Get("continuation-token"), MaxKeys: limit,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.findBucket(c)
	if err != nil {
		return nil, err
	}
	for key, o := range b.from(prefix, after) {
		group := grouped(key, prefix, delimiter)
		if group != "" && strings.HasPrefix(after, group) {
			continue // told already, as part of this group
		}
		if out.KeyCount == limit {
			out.IsTruncated = limit > 0
			break
		}
		out.KeyCount++
		if after = key; group != "" {
			after = group
			out.CommonPrefixes = append(out.CommonPrefixes, commonPrefix{encode(group)})
			continue
		}
		out.Contents = append(out.Contents, listedObject{
			Key: encode(key), LastModified: o.modified.Format(listTime), ETag: quoted(o.etag), Size: len(o.data),
			ChecksumAlgorithm: o.sum.name(), ChecksumType: o.sum.kind, StorageClass: "STANDARD",
		})
	}
	if out.IsTruncated {
		out.NextContinuationToken = base64.RawURLEncoding.EncodeToString([]byte("after " + after))
	}
	return newResponse(http.StatusOK).xml(marshal(out)), nil
}

// position is the last key or group of the page before: from the token, or else from start-after.
func position(q url.Values) (string, *apiError) {
	if !q.Has("continuation-token") {
		return q.Get("start-after"), nil
	}
	token := q.Get("continuation-token")
	raw, err := base64.RawURLEncoding.DecodeString(token)
	after, ok := strings.CutPrefix(string(raw), "after ")
	if err != nil || !ok {
		return "", invalidArgument("The continuation token provided is incorrect", "continuation-token", token)
	}
	return after, nil
}

// from yields, in order, the objects with the prefix whose keys come after the given one. The mutex is held.
func (b *bucket) from(prefix, after string) func(yield func(string, *object) bool) {
	return func(yield func(string, *object) bool) {
		keys := b.keys()
		i, found := slices.BinarySearch(keys, max(prefix, after))
		if found && after >= prefix && keys[i] == after {
			i++
		}
		for ; i < len(keys) && strings.HasPrefix(keys[i], prefix); i++ {
			if !yield(keys[i], b.objects[keys[i]]) {
				return
			}
		}
	}
}

// grouped returns the common prefix that stands for the key in a listing with a delimiter, or "".
func grouped(key, prefix, delimiter string) string {
	if delimiter == "" {
		return ""
	}
	i := strings.Index(key[len(prefix):], delimiter)
	if i < 0 {
		return ""
	}
	return key[:len(prefix)+i+len(delimiter)]
}

type partList struct {
	XMLName                                xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
	Bucket, Key, UploadId                  string
	PartNumberMarker, NextPartNumberMarker int32
	MaxParts                               int
	IsTruncated                            bool
	ChecksumAlgorithm                      string `xml:",omitempty"`
	ChecksumType                           string `xml:",omitempty"`
	StorageClass                           string
	Parts                                  []listedPart `xml:"Part"`
}

type listedPart struct {
	PartNumber         int32
	LastModified, ETag string
	Size               int
	checksumFields
}

func (s *Server) listParts(c *call) (*response, *apiError) {
	limit, err := s.limit(c.req.Query, "max-parts")
	if err != nil {
		return nil, err
	}
	var marker int64
	if v := c.req.Query.Get("part-number-marker"); v != "" {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 {
			return nil, invalidArgument("Argument part-number-marker must be an integer between 0 and 2147483647", "part-number-marker", v)
		}
		marker = n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.findUpload(c)
	if err != nil {
		return nil, err
	}
	out := partList{
		Bucket: u.bucket, Key: u.key, UploadId: u.id, PartNumberMarker: int32(marker), MaxParts: limit, StorageClass: "STANDARD",
	}
	if u.alg != nil {
		out.ChecksumAlgorithm, out.ChecksumType = u.alg.name, u.kind
	}
	for _, p := range u.sortedParts() {
		if p.number <= int32(marker) {
			continue
		}
		if len(out.Parts) == limit {
			out.IsTruncated = limit > 0
			break
		}
		lp := listedPart{PartNumber: p.number, LastModified: p.modified.Format(listTime), ETag: quoted(p.etag), Size: len(p.data)}
		if u.alg != nil {
			lp.checksumFields = p.sum.fields()
		}
		out.Parts = append(out.Parts, lp)
		out.NextPartNumberMarker = p.number
	}
	return newResponse(http.StatusOK).xml(marshal(out)), nil
}

type uploadList struct {
	XMLName                   xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket, Prefix            string
	Delimiter                 string `xml:",omitempty"`
	EncodingType              string `xml:",omitempty"`
	KeyMarker, UploadIdMarker string
	NextKeyMarker             string `xml:",omitempty"`
	NextUploadIdMarker        string `xml:",omitempty"`
	MaxUploads                int
	IsTruncated               bool
	Uploads                   []listedUpload `xml:"Upload"`
	CommonPrefixes            []commonPrefix
}

type listedUpload struct {
	Key, UploadId     string
	Initiated         string
	StorageClass      string
	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

func (s *Server) listUploads(c *call) (*response, *apiError) {
	q := c.req.Query
	encode, err := encoder(q)
	if err != nil {
		return nil, err
	}
	limit, err := s.limit(q, "max-uploads")
	if err != nil {
		return nil, err
	}
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	key, id := q.Get("key-marker"), q.Get("upload-id-marker")
	out := uploadList{
		Bucket: c.req.Bucket, Prefix: encode(prefix), Delimiter: encode(delimiter), EncodingType: q.Get("encoding-type"),
		KeyMarker: encode(key), UploadIdMarker: id, MaxUploads: limit,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findBucket(c); err != nil {
		return nil, err
	}
	count, lastKey, lastID := 0, "", ""
	for _, u := range s.uploadsAfter(c.req.Bucket, key, id) {
		if !strings.HasPrefix(u.key, prefix) {
			continue
		}
		group := grouped(u.key, prefix, delimiter)
		if group != "" && (group == lastKey || strings.HasPrefix(key, group)) {
			continue
		}
		if count == limit {
			out.IsTruncated = limit > 0
			break
		}
		count++
		if group != "" {
			lastKey, lastID = group, ""
			out.CommonPrefixes = append(out.CommonPrefixes, commonPrefix{encode(group)})
			continue
		}
		lastKey, lastID = u.key, u.id
		lu := listedUpload{Key: encode(u.key), UploadId: u.id, Initiated: u.initiated.Format(listTime), StorageClass: "STANDARD"}
		if u.alg != nil {
			lu.ChecksumAlgorithm, lu.ChecksumType = u.alg.name, u.kind
		}
		out.Uploads = append(out.Uploads, lu)
	}
	if out.IsTruncated {
		out.NextKeyMarker, out.NextUploadIdMarker = encode(lastKey), lastID
	}
	return newResponse(http.StatusOK).xml(marshal(out)), nil
}

// uploadsAfter returns the bucket's uploads by key and, for one key, by age, without those up to the marker. As in S3, an
// upload id without a key is ignored, and a key without an id stands for all of that key's uploads. The mutex is held.
func (s *Server) uploadsAfter(bucket, key, id string) []*upload {
	seq := s.ids[id] // known even when that upload has ended since
	var out []*upload
	for _, u := range s.uploads {
		if u.bucket != bucket {
			continue
		}
		if key == "" || u.key > key || u.key == key && seq > 0 && u.seq > seq {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *upload) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
	})
	return out
}
