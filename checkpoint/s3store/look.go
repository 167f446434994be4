package s3store

import (
	"context"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/checkpoint"
)

// listing is what is below the prefix of the shard.
type listing struct {
	ids    []checkpoint.ID // ascending
	epochs []int64         // ascending
	// tags are the ETags of manifests and epochs, by name.
	tags map[string]string
	// blobs are the sizes of blobs, by name.
	blobs map[string]int64
}

// newest returns the greatest id, 0 when there is none.
func (l listing) newest() checkpoint.ID {
	if len(l.ids) == 0 {
		return 0
	}
	return l.ids[len(l.ids)-1]
}

// epoch returns the greatest claimed epoch, 0 when there is none.
func (l listing) epoch() int64 {
	if len(l.epochs) == 0 {
		return 0
	}
	return l.epochs[len(l.epochs)-1]
}

// look lists what is below the prefix of the shard, as far as the names begin with one of the given ones: blobs first, epochs last.
// The pages of a listing are not of one moment. In this order a manifest that is listed had its blobs before, but they may
// be missing from the page before it; whoever misses them looks again.
func (s *Store) look(ctx context.Context, prefix string) (listing, error) {
	l := listing{tags: make(map[string]string), blobs: make(map[string]int64)}
	for info, err := range s.fs.List(ctx, s.path(prefix)) {
		if err != nil {
			return listing{}, err
		}
		name, ok := strings.CutPrefix(info.Path.Key, s.path("").Key)
		if !ok {
			continue
		}
		if id, ok := parseManifestName(name); ok {
			l.ids = append(l.ids, id)
			l.tags[name] = info.ETag
		} else if epoch, ok := parseEpochName(name); ok {
			l.epochs = append(l.epochs, epoch)
			l.tags[name] = info.ETag
		} else if blob, ok := strings.CutPrefix(name, blobPrefix); ok {
			if _, _, ok := parseBlobName(blob); ok {
				l.blobs[blob] = info.Size
			}
		}
	}
	slices.Sort(l.ids) // not every store lists in order
	slices.Sort(l.epochs)
	return l, nil
}
