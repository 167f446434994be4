package s3test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"strconv"
	"strings"
)

// Names of checksum types as S3 spells them.
const (
	fullObject = "FULL_OBJECT"
	composite  = "COMPOSITE"
)

// The tables are read-only. CRC-64/NVME has the reflected polynomial 0x9a6c9329ac4bc9b5.
var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	nvme       = crc64.MakeTable(0x9a6c9329ac4bc9b5)
)

// algorithm is a checksum algorithm of S3.
type algorithm struct {
	name string
	make func() hash.Hash
	size int
	// mergeable: CRCs may describe a whole multipart object; hashes only the list of its parts' hashes.
	mergeable bool
	usual     string // type of a multipart upload that names none
}

// algorithms are those the server verifies. Only the standard library is used.
var algorithms = []*algorithm{
	{"CRC32", func() hash.Hash { return crc32.NewIEEE() }, 4, true, composite},
	{"CRC32C", func() hash.Hash { return crc32.New(castagnoli) }, 4, true, composite},
	{"CRC64NVME", func() hash.Hash { return crc64.New(nvme) }, 8, true, fullObject},
	{"SHA1", sha1.New, sha1.Size, false, composite},
	{"SHA256", sha256.New, sha256.Size, false, composite},
}

// crc64nvme is what S3 computes when a client asks for nothing.
var crc64nvme = algorithmNamed("CRC64NVME")

func algorithmNamed(name string) *algorithm {
	for _, a := range algorithms {
		if strings.EqualFold(a.name, name) {
			return a
		}
	}
	return nil
}

func (a *algorithm) header() string { return "x-amz-checksum-" + strings.ToLower(a.name) }

func (a *algorithm) sum(data []byte) []byte {
	h := a.make()
	h.Write(data)
	return h.Sum(nil)
}

func (a *algorithm) sum64(data []byte) string {
	return base64.StdEncoding.EncodeToString(a.sum(data))
}

// valid reports whether text is a checksum of this algorithm in S3's spelling.
func (a *algorithm) valid(text string) bool {
	raw, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(raw) == a.size
}

// checksum is the value stored with an object or a part. The zero value means none.
type checksum struct {
	alg   *algorithm
	value string // base64; composite values end in "-" and the number of parts
	kind  string
}

func (c checksum) set(h http.Header) {
	if c.alg == nil {
		return
	}
	h.Set(c.alg.header(), c.value)
	if c.kind != "" {
		h.Set("x-amz-checksum-type", c.kind)
	}
}

func (c checksum) name() string {
	if c.alg == nil {
		return ""
	}
	return c.alg.name
}

// compositeSum is the checksum of the parts' checksums.
func compositeSum(a *algorithm, parts []*part) string {
	h := a.make()
	for _, p := range parts {
		h.Write(a.raw(p))
	}
	return base64.StdEncoding.EncodeToString(h.Sum(nil)) + "-" + strconv.Itoa(len(parts))
}

func (a *algorithm) raw(p *part) []byte {
	if p.sum.alg == a {
		if raw, err := base64.StdEncoding.DecodeString(p.sum.value); err == nil {
			return raw
		}
	}
	return a.sum(p.data)
}

// announced returns a checksum header of the request, from the trailer if it came there.
func (c *call) announced(header string) string {
	if v := c.req.Header.Get(header); v != "" {
		return v
	}
	return c.trailer.Get(header)
}

// announcedSum finds the one checksum a request carries; nil when there is none.
func (c *call) announcedSum() (*algorithm, string, *apiError) {
	var alg *algorithm
	var value string
	for _, a := range algorithms {
		v := c.announced(a.header())
		if v == "" {
			continue
		}
		if alg != nil {
			return nil, "", fault("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
		}
		alg, value = a, v
	}
	if alg == nil && c.req.Header.Get("x-amz-sdk-checksum-algorithm") != "" {
		return nil, "", fault("InvalidRequest", "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.")
	}
	return alg, value, nil
}

// verifySum checks the payload against the checksum the client sent with it and returns what is to be stored: that
// checksum, or S3's own CRC64NVME when there was none.
func (s *Server) verifySum(c *call) (sum checksum, given bool, err *apiError) {
	if s.o.Quirks.IgnoreChecksums {
		return checksum{}, false, nil
	}
	alg, want, err := c.announcedSum()
	if err != nil {
		return checksum{}, false, err
	}
	if alg == nil {
		return checksum{alg: crc64nvme, value: crc64nvme.sum64(c.body), kind: fullObject}, false, nil
	}
	if !alg.valid(want) {
		return checksum{}, false, fault("InvalidRequest", "Value for "+alg.header()+" header is invalid.")
	}
	if got := alg.sum64(c.body); got != want {
		return checksum{}, false, badDigest(alg.name)
	}
	return checksum{alg: alg, value: want, kind: fullObject}, true, nil
}

func badDigest(name string) *apiError {
	return fault("BadDigest", "The "+name+" you specified did not match the calculated checksum.")
}

// verifyBody checks Content-MD5 and the payload hash of the signature. Stores that ignore checksums still check these.
func verifyBody(c *call) *apiError {
	if v := c.req.Header.Get("Content-MD5"); v != "" {
		want, err := base64.StdEncoding.DecodeString(v)
		if err != nil || len(want) != md5.Size {
			return fault("InvalidDigest", "The Content-MD5 you specified was invalid.", "Content-MD5", v)
		}
		if got := md5.Sum(c.body); !bytes.Equal(got[:], want) {
			return badDigest("Content-MD5")
		}
	}
	want := c.req.Header.Get("x-amz-content-sha256")
	if len(want) != hex.EncodedLen(sha256.Size) {
		return nil // UNSIGNED-PAYLOAD, STREAMING-..., or nothing
	}
	if got := sha256.Sum256(c.body); hex.EncodeToString(got[:]) != want {
		return fault("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed.",
			"ClientComputedContentSHA256", want, "S3ComputedContentSHA256", hex.EncodeToString(got[:]))
	}
	return nil
}
