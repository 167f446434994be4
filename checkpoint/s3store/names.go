package s3store

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/multipart"
)

const (
	blobPrefix     = "blobs/"
	manifestPrefix = "chk-"
	epochPrefix    = "epoch-"
	jsonSuffix     = ".json"
	blobSuffix     = ".blob"
)

func epochName(epoch int64) string         { return fmt.Sprintf(epochPrefix+"%020d"+jsonSuffix, epoch) }
func manifestName(id checkpoint.ID) string { return fmt.Sprintf(manifestPrefix+"%020d"+jsonSuffix, id) }
func blobName(id checkpoint.ID, e, n int64) string {
	return fmt.Sprintf("%020d-%d-%d"+blobSuffix, id, e, n)
}

// parseNumber reads a number that is not negative; the caller compares the spelling.
func parseNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

// between returns what stands between prefix and suffix.
func between(s, prefix, suffix string) (string, bool) {
	s, ok1 := strings.CutPrefix(s, prefix)
	s, ok2 := strings.CutSuffix(s, suffix)
	return s, ok1 && ok2
}

func parseEpochName(name string) (int64, bool) {
	digits, ok := between(name, epochPrefix, jsonSuffix)
	n, isNumber := parseNumber(digits)
	return n, ok && isNumber && n > 0 && name == epochName(n)
}

func parseManifestName(name string) (checkpoint.ID, bool) {
	digits, ok := between(name, manifestPrefix, jsonSuffix)
	n, isNumber := parseNumber(digits)
	id := checkpoint.ID(n)
	return id, ok && isNumber && n > 0 && name == manifestName(id)
}

// parseBlobName returns the checkpoint and the epoch of a blob.
func parseBlobName(name string) (id checkpoint.ID, epoch int64, ok bool) {
	parts := strings.Split(strings.TrimSuffix(name, blobSuffix), "-")
	if len(parts) != 3 {
		return 0, 0, false
	}
	number, ok1 := parseNumber(parts[0])
	epoch, ok2 := parseNumber(parts[1])
	n, ok3 := parseNumber(parts[2])
	id = checkpoint.ID(number)
	return id, epoch, ok1 && ok2 && ok3 && name == blobName(id, epoch, n)
}

// longestName is the longest name below a shard's prefix.
func longestName() string { return blobPrefix + blobName(math.MaxInt64, math.MaxInt64, math.MaxInt64) }

// blobRef names a blob and says what it must contain, written as name:size:crc64.
type blobRef struct {
	name string
	size int64
	crc  multipart.CRC
}

// String returns the ref as manifests have it.
func (r blobRef) String() string { return fmt.Sprintf("%s:%d:%016x", r.name, r.size, uint64(r.crc)) }

// id returns the checkpoint that put the blob.
func (r blobRef) id() checkpoint.ID {
	id, _, _ := parseBlobName(r.name)
	return id
}

// parseRef reads what String wrote, in that spelling only.
func parseRef(text string) (blobRef, error) {
	bad := func() (blobRef, error) { return blobRef{}, fmt.Errorf("%.200q is not a blob ref", text) }
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return bad()
	}
	_, _, okName := parseBlobName(parts[0])
	size, okSize := parseNumber(parts[1])
	crc, err := strconv.ParseUint(parts[2], 16, 64)
	r := blobRef{name: parts[0], size: size, crc: multipart.CRC(crc)}
	if !okName || !okSize || err != nil || r.String() != text {
		return bad()
	}
	return r, nil
}

// refsOf returns all blob refs that m names.
func refsOf(m checkpoint.Manifest) (refs []blobRef, err error) {
	for _, s := range m.States {
		for _, text := range s.Refs {
			ref, err := parseRef(text)
			if err != nil {
				return nil, fmt.Errorf("state of %s: %w", s.Name, err)
			}
			refs = append(refs, ref)
		}
	}
	return refs, nil
}
