package sink

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/s3fs"
)

// defaultListThreshold is how many files a listing has to prove to be worth it: on Amazon's price list a LIST costs as much as 12 HEADs, and a
// page of it takes longer.
const defaultListThreshold = 16

// publishMany publishes the files at the given places of due, and proves by listings what the store has acknowledged with the exact ETag. It returns
// the places of those that are still to be looked at; settle is told of all others.
func (s *Sink[T]) publishMany(ctx context.Context, due []*part, todo []int, settle func(int, multipart.Object, error)) (rest []int) {
	claimed := make([]bool, len(due))
	s.each(todo, func(i int) {
		object, proven, err := due[i].upload.Publish(ctx)
		if claimed[i] = err == nil && !proven; !claimed[i] {
			settle(i, object, err)
		}
	})
	for _, i := range todo {
		if claimed[i] {
			rest = append(rest, i)
		}
	}
	slices.SortFunc(rest, func(a, b int) int { return cmp.Compare(due[a].key, due[b].key) })
	s.proveListed(ctx, due, rest, settle)
	return slices.DeleteFunc(rest, func(i int) bool { return due[i].proven != nil })
}

// proveListed proves files, ordered by their keys, by listings that begin after all of them were acknowledged. It stops when a page proves
// fewer than are worth it, so that files scattered among many others cost no more than a look at each. An error of a listing is none of the
// commit: the look decides.
func (s *Sink[T]) proveListed(ctx context.Context, due []*part, places []int, settle func(int, multipart.Object, error)) {
	if !contentETags(due, places) {
		return
	}
	for len(places) >= s.listThreshold {
		first, last := due[places[0]].key, due[places[len(places)-1]].key
		prefix := s3fs.Path{Bucket: s.path.Bucket, Key: commonPrefix(first, last)}
		page, more, err := s.fs.ListAfter(ctx, prefix, first[:len(first)-1], 2*len(places))
		if err != nil || len(page) == 0 {
			return
		}
		listed := make(map[string]s3fs.Info, len(page))
		for _, info := range page {
			listed[info.Path.Key] = info
		}
		proven := 0
		for _, i := range places {
			info, found := listed[due[i].key]
			if !found {
				continue
			}
			if object, ok := due[i].upload.Listed(info.Size, info.ETag); ok {
				settle(i, object, nil)
				proven++
			}
		}
		if !more || proven < s.listThreshold {
			return
		}
		// Those before the end that are not proven are none of this page's. A store that sorts in another way leaves more of them.
		end := page[len(page)-1].Path.Key
		places = slices.DeleteFunc(slices.Clone(places), func(i int) bool { return due[i].proven != nil || due[i].key <= end })
	}
}

// contentETags says whether the ETags can tell these files from each other: no two of different content have the same.
func contentETags(due []*part, places []int) bool {
	digests := make(map[string]multipart.CRC, len(places))
	for _, i := range places {
		u := due[i].upload
		if before, seen := digests[u.ClaimedETag()]; seen && before != u.Digest() {
			return false
		}
		digests[u.ClaimedETag()] = u.Digest()
	}
	return true
}

// commonPrefix returns what two keys begin with.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return strings.ToValidUTF8(a[:n], "")
}
