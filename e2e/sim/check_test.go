package sim

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/s3fs"
)

// ledger is what the world knows about uploads and records.
type ledger struct {
	parts   map[partKey]storedPart
	listed  map[string]string // file -> record
	stolen  map[string]bool   // keys at which somebody else's object is
	skipped int64             // rows that records say were given up
	expired bool              // an upload has been taken away
	taken   int               // uploads that were
	clashes int               // parts that a life has written over those of another one that was alive beside it
}

type partKey struct {
	upload string
	number int32
}

type storedPart struct {
	size int64
	etag string
	life *life
}

func newLedger() ledger {
	return ledger{parts: map[partKey]storedPart{}, listed: map[string]string{}, stolen: map[string]bool{}}
}

// contested reports whether lives have written over each other's parts.
func (l *ledger) contested() bool { return l.clashes > 0 }

// beforeCall notes what a store call may change and returns the check to make after it.
func (w *world) beforeCall(e *event) (check func()) {
	key := strings.TrimPrefix(e.call.req.URL.Path, "/"+bucket+"/")
	switch e.what {
	case "AbortMultipartUpload":
		w.fail("an upload is aborted: %s", e.text)
	case "CompleteMultipartUpload", "PutObject file":
		_, before := w.store.Object(bucket, key)
		return func() {
			if _, after := w.store.Object(bucket, key); after && !before {
				w.checkVisible(key)
			}
		}
	case "DeleteObject":
		w.checkDelete(e)
	case "PutObject record":
		old, before := w.store.Object(bucket, key)
		if before {
			return w.beforeOverwrite(key, old.Data)
		}
		return func() {
			if o, after := w.store.Object(bucket, key); after && !before {
				w.checkRecord(key, o.Data)
			}
		}
	case "PutObject checkpoint":
		return w.scanManifests
	case "UploadPart":
		return func() { w.notePart(e) }
	}
	return func() {}
}

// checkVisible is the second invariant: nothing is visible before the checkpoint that stages it would survive a crash.
func (w *world) checkVisible(key string) {
	for _, m := range w.manifest {
		for _, f := range m.files {
			if f.handle.Target.Key != key || !f.handle.Sealed || f.staged == 0 {
				continue
			}
			if o, _ := w.store.Object(bucket, key); o.Metadata[s3fs.TokenMetadata] != f.handle.Token {
				w.fail("%s is there with token %q, but checkpoint %d says %q", key, o.Metadata[s3fs.TokenMetadata], m.id, f.handle.Token)
			}
			return
		}
	}
	w.fail("%s is visible, but no checkpoint that stages it would survive a crash", key)
}

// recordText mirrors the text of a commit record.
type recordText struct {
	Record struct {
		Checkpoint int64 `json:"checkpoint"`
		Files      []struct {
			Key   string `json:"key"`
			Bytes int64  `json:"bytes"`
			Rows  int64  `json:"rows"`
		} `json:"files"`
		Skipped []struct {
			Rows int64 `json:"rows"`
		} `json:"skipped"`
	} `json:"record"`
}

// checkRecord checks a commit record when it appears: its checkpoint would survive a crash, and each of its files is there as it says and
// in no other record.
func (w *world) checkRecord(key string, text []byte) {
	var r recordText
	if err := json.Unmarshal(text, &r); err != nil {
		w.fail("%s: %v", key, err)
		return
	}
	if w.newest == nil || w.newest.id < r.Record.Checkpoint {
		w.fail("%s is there before its checkpoint is durable", key)
	}
	for _, f := range r.Record.Files {
		if w.uploads.stolen[f.Key] {
			w.fail("%s lists %s, which is not ours", key, f.Key)
		}
		if other, twice := w.uploads.listed[f.Key]; twice {
			w.fail("%s is in %s and in %s", f.Key, other, key)
		}
		w.uploads.listed[f.Key] = key
		o, there := w.store.Object(bucket, f.Key)
		if !there || int64(len(o.Data)) != f.Bytes || int64(strings.Count(string(o.Data), "\n")) != f.Rows {
			w.fail("%s lists %s with %d bytes and %d rows, which is not there or not like that (%d bytes)", key, f.Key, f.Bytes, f.Rows, len(o.Data))
		}
	}
	for _, f := range r.Record.Skipped {
		w.uploads.skipped += f.Rows
		w.outcome = expired
		if !w.uploads.expired {
			w.fail("%s gives a file up, but no upload has expired", key)
		}
	}
	w.stats.add("commit records")
	w.stats.addN("files published", len(r.Record.Files))
}

// steal puts an object of the same bytes under the key of an upload that is about to be completed, and takes the upload away: a file
// whose token nobody looks at would be taken for ours.
func (w *world) steal(e *event) {
	if !w.plan.thief || e.what != "CompleteMultipartUpload" || len(w.uploads.stolen) > 0 || w.chance.IntN(4) > 0 {
		return
	}
	id := e.call.req.URL.Query().Get("uploadId")
	for _, u := range w.store.Uploads(bucket) {
		if u.ID != id {
			continue
		}
		var data []byte
		for _, p := range u.Parts {
			data = append(data, p.Data...)
		}
		w.logf("somebody else puts an object at %s", u.Key)
		w.stats.add("foreign objects under a key of ours")
		w.uploads.stolen[u.Key] = true
		w.store.PutObject(bucket, u.Key, data, nil)
		w.store.DropUpload(id)
	}
}

// notePart remembers who has written a part last.
func (w *world) notePart(e *event) {
	q := e.call.req.URL.Query()
	n, err := strconv.ParseInt(q.Get("partNumber"), 10, 32)
	if err != nil {
		return
	}
	id := q.Get("uploadId")
	for _, u := range w.store.Uploads(bucket) {
		if u.ID != id {
			continue
		}
		for _, p := range u.Parts {
			if p.Number != int32(n) {
				continue
			}
			k := partKey{id, p.Number}
			before := w.uploads.parts[k]
			now := storedPart{size: int64(len(p.Data)), etag: p.ETag, life: e.life}
			w.uploads.parts[k] = now
			if before.life != nil && before.life != e.life && before.etag != p.ETag && (before.life.isZombie() || e.life.isZombie()) {
				w.uploads.clashes++
				w.stats.add("parts over which a zombie and its successor fought")
			}
		}
	}
}

// checkEnd looks at a life that has ended, however it did.
func (w *world) checkEnd(l *life) {
	w.stats.add("lives")
	if l.used != 0 {
		w.fail("life %d has ended and %d bytes of its memory budget are not given back", l.number, l.used)
	}
	w.judge(l)
}
