package multipart_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// listed is what a listing shows at the key.
func (r *rig) listed() (size int64, etag string) {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	o := r.store.objects[key]
	return int64(len(o.data)), `"` + o.etag + `"`
}

func TestPublish_AnExactAnswerIsAClaimThatAListingProvesWithoutALook(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		r.store.claims = true
		_, proven, err := u.Publish(t.Context())
		require.NoError(t, err)
		require.False(t, proven, "an answer is a claim")
		require.NotEmpty(t, u.ClaimedETag())
		size, etag := r.listed()
		o, proven := u.Listed(size, etag)
		require.True(t, proven)
		require.Equal(t, int64(len(data)), o.Size)
		require.Equal(t, 1, r.store.calls(publish))
		require.Zero(t, r.store.calls("head"))
		r.published(data)
		again, err := u.Commit(t.Context())
		require.NoError(t, err)
		require.Equal(t, o, again)
		_, proven = u.Listed(0, "")
		require.True(t, proven, "committed is committed")
	})
}

func TestPublish_AListingThatShowsSomethingElseProvesNothingAndTheLookDecides(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, _ string) {
		r.store.claims = true
		_, proven, err := u.Publish(t.Context())
		require.NoError(t, err)
		require.False(t, proven)
		size, etag := r.listed()
		for _, other := range []struct {
			size int64
			etag string
		}{{size + 1, etag}, {size, md5Of(nil)}, {size, ""}, {0, ""}} {
			_, proven = u.Listed(other.size, other.etag)
			require.False(t, proven)
		}
		r.store.mu.Lock() // replaced by somebody
		r.store.objects[key] = object{data: data, etag: md5Of(data), token: "somebody"}
		r.store.mu.Unlock()
		_, err = u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrForeign)
		require.Equal(t, 1, r.store.calls("head"))
	})
}

func TestPublish_A200WithNoObjectIsFoundByTheLook(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		r.store.claims = true
		r.store.script(rule{op: publish, times: 1, lie: true})
		_, proven, err := u.Publish(t.Context())
		require.NoError(t, err)
		require.False(t, proven)
		_, err = u.Commit(t.Context())
		require.ErrorIs(t, err, multipart.ErrMissing)
		require.ErrorContains(t, err, "although the store reported success")
		_, proven = u.Listed(int64(len(data)), u.ClaimedETag())
		require.False(t, proven, "the claim is used up")
		_, proven, err = u.Publish(t.Context()) // again, as Commit would
		require.NoError(t, err)
		require.False(t, proven)
		_, err = u.Commit(t.Context())
		require.NoError(t, err)
		r.published(data)
	})
}

// What Complete or PUT answers is not what this file's parts make: nothing is claimed, and the look proves it as ever.
func TestPublish_WithoutAnExactAnswerItLooks(t *testing.T) {
	for name, setup := range map[string]func(*store, string){
		"another etag":     func(*store, string) {},
		"etags are no MD5": func(s *store, _ string) { s.claims, s.opaque = true, true },
		"the answer is lost": func(s *store, publish string) {
			s.claims = true
			s.script(rule{op: publish, times: 1, after: true, err: errInjected})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
				if name == "etags are no MD5" {
					// The parts went up before: begin anew, so that theirs are no MD5s either.
					u.Abandon()
					setup(r.store, publish)
					u = r.start()
					r.write(u, data)
					require.NoError(t, u.Seal())
				} else {
					setup(r.store, publish)
				}
				o, proven, err := u.Publish(t.Context())
				require.NoError(t, err)
				require.True(t, proven)
				require.Equal(t, token, o.Token)
				require.Empty(t, u.ClaimedETag())
				require.Equal(t, 1, r.store.calls("head"))
				r.published(data)
			})
		})
	}
}

// A file that another process may have published is looked at first, and needs no second look.
func TestPublish_AfterARestoreItLooksFirst(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, data []byte, publish string) {
		r.store.claims = true
		h := r.persist(u)
		_, err := u.Commit(t.Context())
		require.NoError(t, err)
		r.store.takeLog()
		_, proven, err := r.resume(h).Publish(t.Context())
		require.NoError(t, err)
		require.True(t, proven)
		require.Equal(t, []string{"head " + key}, r.store.takeLog())
		r.published(data)
	})
}

// The MD5 of a larger body would take longer than the look.
func TestPublish_ALargerBodyIsNotHashed(t *testing.T) {
	r := newRig(t)
	r.size = 1 << 20
	r.store.claims = true
	u := r.start()
	data := bytesOf(1, 256<<10+1)
	r.write(u, data)
	require.NoError(t, u.Seal())
	_, proven, err := u.Publish(t.Context())
	require.NoError(t, err)
	require.True(t, proven)
	require.Equal(t, 1, r.store.calls("head"))
	r.published(data)
}

func TestListed_AfterAnAbandonProvesNothing(t *testing.T) {
	eachKind(t, func(t *testing.T, r *rig, u *multipart.Upload, _ []byte, _ string) {
		r.store.claims = true
		_, _, err := u.Publish(t.Context())
		require.NoError(t, err)
		u.Abandon()
		_, proven := u.Listed(r.listed())
		require.False(t, proven)
	})
}
