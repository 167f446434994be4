package s3fs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

var target = multipart.Target{Bucket: "b", Key: "k"}

const mib = 1 << 20

var smallParts = s3test.Options{MinPartSize: 1}

// upload sends an object of the given parts by hand, up to Complete.
func upload(t *testing.T, s store, parts ...[]byte) (id string, list []multipart.Part, size int64, crc multipart.CRC) {
	t.Helper()
	api := s.API()
	id, err := api.Create(s.ctx, target, "token-1")
	require.NoError(t, err)
	for i, p := range parts {
		sum := multipart.Checksum(p)
		etag, err := api.UploadPart(s.ctx, target, id, int32(i+1), bytes.NewReader(p), int64(len(p)), sum)
		require.NoError(t, err)
		assert.NotContains(t, etag, `"`)
		list = append(list, multipart.Part{Number: int32(i + 1), Size: int64(len(p)), ETag: etag, CRC: sum})
		size += int64(len(p))
		crc = crc.Update(p)
	}
	return id, list, size, crc
}

func TestAdapter_UploadIsDeclaredProvenAndShown(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		one, two := text(5*mib), text(1000)
		id, list, size, crc := upload(t, s, one, two)

		listed, err := s.API().ListParts(s.ctx, target, id)
		require.NoError(t, err)
		assert.Equal(t, list, listed)

		_, err = s.API().Head(s.ctx, target)
		require.ErrorIs(t, err, multipart.ErrNotFound, "nothing is visible before Complete")

		o, err := s.API().Complete(s.ctx, target, id, list, size, crc)
		require.NoError(t, err)
		assert.Equal(t, size, o.Size)
		h, err := s.API().Head(s.ctx, target)
		require.NoError(t, err)
		assert.Equal(t, multipart.Object{Size: size, ETag: o.ETag, Token: "token-1", CRC: crc, HasCRC: true, LastModified: h.LastModified}, h)

		stored, _ := s.srv.Object("b", "k")
		assert.Equal(t, append(one, two...), stored.Data)
		assert.Equal(t, "FULL_OBJECT", stored.Checksum.Type)
		assert.Equal(t, crc.String(), stored.Checksum.Value)
	})
}

func TestAdapter_WrongChecksumIsBadDigestAndNothingAppears(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		id, list, size, crc := upload(t, s, text(1000))
		_, err := s.API().UploadPart(s.ctx, target, id, 2, bytes.NewReader(text(10)), 10, multipart.Checksum(text(11)))
		require.ErrorContains(t, err, "BadDigest")
		_, err = s.API().Complete(s.ctx, target, id, list, size, crc+1)
		require.ErrorContains(t, err, "BadDigest")
		_, err = s.API().Put(s.ctx, target, "t", bytes.NewReader(text(10)), 10, multipart.Checksum(text(11)))
		require.ErrorContains(t, err, "BadDigest")
		assert.Empty(t, s.srv.Keys("b"))
	})
}

func TestAdapter_ErrorsAreMultipartErrorsWithTheSentinels(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		_, err := s.API().UploadPart(s.ctx, target, "gone", 7, bytes.NewReader([]byte("x")), 1, multipart.Checksum([]byte("x")))
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		me, ok := err.(*multipart.Error) //nolint:errorlint // the outermost error is what multipart passes on
		require.True(t, ok)
		assert.Equal(t, "upload part", me.Op)
		assert.Equal(t, target, me.Target)
		assert.Equal(t, "gone", me.UploadID)
		assert.Equal(t, int32(7), me.Part)
		assert.Equal(t, 1, me.Attempts)
		oe, ok := errors.AsType[*s3fs.OpError](err)
		require.True(t, ok)
		assert.Equal(t, retrymode.Permanent, oe.Class)
		assert.Equal(t, 1, strings.Count(err.Error(), "s3://b/k"), "%v", err)

		_, err = s.API().Complete(s.ctx, target, "gone", []multipart.Part{{Number: 1, ETag: "e"}}, 1, 0)
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		_, err = s.API().ListParts(s.ctx, target, "gone")
		require.ErrorIs(t, err, multipart.ErrNoSuchUpload)
		require.ErrorIs(t, s.API().Abort(s.ctx, target, "gone"), multipart.ErrNoSuchUpload)
		_, err = s.API().Head(s.ctx, target)
		require.ErrorIs(t, err, multipart.ErrNotFound)
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestAdapter_AbortForgetsTheUpload(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		id, _, _, _ := upload(t, s, text(10))
		require.Len(t, s.srv.Uploads("b"), 1)
		require.NoError(t, s.API().Abort(s.ctx, target, id))
		assert.Empty(t, s.srv.Uploads("b"))
	})
}

func TestAdapter_ListPartsPagesToTheEnd(t *testing.T) {
	bubble(t, options{server: s3test.Options{PageSize: 2}}, func(t *testing.T, s store) {
		id, list, _, _ := upload(t, s, text(1), text(2), text(3), text(4), text(5))
		got, err := s.API().ListParts(s.ctx, target, id)
		require.NoError(t, err)
		assert.Equal(t, list, got)
		assert.Equal(t, 3, s.srv.Counts().Total(s3test.ListParts))
	})
}

func TestAdapter_ListPartsThatPagesInACircleIsAnError(t *testing.T) {
	page := func(parts string) string {
		return `<?xml version="1.0"?><ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>1</NextPartNumberMarker>` + parts + `</ListPartsResult>`
	}
	for name, body := range map[string]string{
		"the same page again": page(`<Part><PartNumber>1</PartNumber><ETag>"e"</ETag><Size>1</Size></Part>`),
		"an empty page":       page(""),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, options{}, func(t *testing.T, s store) {
				defer s.srv.Control(s3test.Match{Op: s3test.ListParts}, s3test.Always(s3test.Raw(200, "application/xml", body)))()
				_, err := s.API().ListParts(s.ctx, target, "u")
				require.Error(t, err)
				assert.LessOrEqual(t, s.srv.Counts().Total(), 2)
			})
		})
	}
}

func TestAdapter_CompleteAnsweredWithoutAResultIsAmbiguousAndNotSuccess(t *testing.T) {
	for name, reply := range map[string]*s3test.Reply{
		"empty 200":               s3test.NoBody200(),
		"whitespace only":         s3test.Raw(200, "application/xml", "   \n  "),
		"answer lost":             s3test.ResetAfter(),
		"lost before it happened": s3test.ResetBefore(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, options{}, func(t *testing.T, s store) {
				id, list, size, crc := upload(t, s, text(10))
				defer s.srv.Control(s3test.Match{Op: s3test.CompleteMultipartUpload}, s3test.Always(reply))()
				_, err := s.API().Complete(s.ctx, target, id, list, size, crc)
				require.Error(t, err)
				e, ok := errors.AsType[*s3fs.OpError](err)
				require.True(t, ok)
				assert.Equal(t, retrymode.Ambiguous, e.Class, "%v", err)
				assert.Equal(t, 1, s.srv.Counts().Total(s3test.CompleteMultipartUpload), "the committer looks before it asks again")
			})
		})
	}
}

func TestAdapter_O10_ErrorInA200IsAnErrorAndRetriedLikeItsCode(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		id, list, size, crc := upload(t, s, text(10))
		defer s.srv.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, First: 2}, s3test.Always(s3test.ErrorIn200("InternalError")))()
		_, err := s.API().Complete(s.ctx, target, id, list, size, crc)
		require.NoError(t, err)
		assert.Equal(t, 3, s.srv.Counts().Total(s3test.CompleteMultipartUpload))
	})
}

func TestAdapter_O46_PartWithoutETagIsAnErrorThatNamesTheHeader(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.UploadPart}, s3test.Always(s3test.NoBody200()))()
		id, err := s.API().Create(s.ctx, target, "t")
		require.NoError(t, err)
		_, err = s.API().UploadPart(s.ctx, target, id, 1, bytes.NewReader([]byte("x")), 1, multipart.Checksum([]byte("x")))
		require.ErrorIs(t, err, s3fs.ErrMissingHeader)
		require.ErrorContains(t, err, "ETag header")
		require.ErrorContains(t, err, "upload part 1 of s3://b/k")
		assert.Equal(t, 1, s.srv.Counts().Total(s3test.UploadPart))
	})
}

func TestAdapter_O41_ChecksumsOffMeansNoneOnTheWire(t *testing.T) {
	bubble(t, options{server: smallParts, settings: func(s *s3fs.Settings) { s.Checksums = false }}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{}, func(r s3test.Request) *s3test.Reply {
			for name := range r.Header {
				low := strings.ToLower(name)
				if strings.HasPrefix(low, "x-amz-checksum") || strings.HasPrefix(low, "x-amz-sdk-checksum") || low == "x-amz-trailer" {
					t.Errorf("%s carries %s", r.Op, name)
					return s3test.Status(400, "InvalidRequest")
				}
			}
			return nil
		})()
		id, list, size, crc := upload(t, s, text(100_000), text(10))
		_, err := s.API().Complete(s.ctx, target, id, list, size, crc)
		require.NoError(t, err)
		o, err := s.API().Head(s.ctx, target)
		require.NoError(t, err)
		assert.False(t, o.HasCRC)
		require.NoError(t, s.Put(s.ctx, path("p"), bytes.NewReader(text(10))))
		require.NoError(t, s.PutIfAbsent(s.ctx, path("r"), text(10)))
		r, err := s.Open(s.ctx, path("k"))
		assert.Len(t, readAll(t, r, err), 100_010)
		require.NoError(t, s.Delete(s.ctx, path("p")))
	})
}

// O-42 and O-44: the body goes out as it is, with its length and the checksum in a header known before, so that a store without aws-chunked,
// or one that insists on a length, can take it; and no SHA-256 is computed over it.
func TestAdapter_O44_BodiesHaveALengthAndAreNotChunkedOrHashed(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, s store) {
		seen := 0
		defer s.srv.Control(s3test.Match{}, func(r s3test.Request) *s3test.Reply {
			if r.Op != s3test.UploadPart && r.Op != s3test.PutObject {
				return nil
			}
			seen++
			assert.NotEmpty(t, r.Header.Get("Content-Length"))
			assert.Empty(t, r.Header.Get("Content-Encoding"))
			assert.Empty(t, r.Header.Get("X-Amz-Trailer"))
			assert.Equal(t, "UNSIGNED-PAYLOAD", r.Header.Get("X-Amz-Content-Sha256"))
			assert.NotEmpty(t, r.Header.Get("X-Amz-Checksum-Crc64nvme"))
			return nil
		})()
		upload(t, s, text(3*mib), text(17))
		require.NoError(t, s.Put(s.ctx, path("p"), bytes.NewReader(text(10))))
		require.NoError(t, s.Put(s.ctx, path("empty"), bytes.NewReader(nil)))
		assert.Equal(t, 4, seen)
	})
}

func TestAdapter_O29_ThrottledPartIsSentAgainWithTheSameBytes(t *testing.T) {
	bubble(t, options{server: smallParts}, func(t *testing.T, s store) {
		defer s.srv.Control(s3test.Match{Op: s3test.UploadPart}, func(r s3test.Request) *s3test.Reply {
			if r.Attempt == 1 {
				return s3test.SlowDown()
			}
			return nil
		})()
		one, two := text(100_000), text(100)
		id, list, size, crc := upload(t, s, one, two)
		_, err := s.API().Complete(s.ctx, target, id, list, size, crc)
		require.NoError(t, err)
		o, _ := s.srv.Object("b", "k")
		assert.Equal(t, append(one, two...), o.Data)
		assert.Equal(t, 4, s.srv.Counts().Total(s3test.UploadPart))
	})
}

func TestAdapter_O30_AttemptsOnTheWireAreRetriesPlusOne(t *testing.T) {
	for _, retries := range []int{0, 3, 10} {
		for _, mode := range []retrymode.Mode{retrymode.Standard, retrymode.Adaptive} {
			t.Run(fmt.Sprintf("%v/%d", mode, retries), func(t *testing.T) {
				set := func(s *s3fs.Settings) { s.Retry.MaxRetries, s.Retry.Mode = retries, mode }
				bubble(t, options{settings: set}, func(t *testing.T, s store) {
					defer s.srv.Control(s3test.Match{}, s3test.Always(s3test.SlowDown()))()
					api := s.API()
					one := multipart.Checksum([]byte("x"))
					calls := map[s3test.Op]func() error{
						s3test.CreateMultipartUpload: func() error { _, err := api.Create(s.ctx, target, "t"); return err },
						s3test.UploadPart: func() error {
							_, err := api.UploadPart(s.ctx, target, "u", 1, bytes.NewReader([]byte("x")), 1, one)
							return err
						},
						s3test.CompleteMultipartUpload: func() error {
							_, err := api.Complete(s.ctx, target, "u", []multipart.Part{{Number: 1}}, 1, one)
							return err
						},
						s3test.AbortMultipartUpload: func() error { return api.Abort(s.ctx, target, "u") },
						s3test.ListParts:            func() error { _, err := api.ListParts(s.ctx, target, "u"); return err },
						s3test.HeadObject:           func() error { _, err := api.Head(s.ctx, target); return err },
						s3test.GetObject:            func() error { _, err := s.Open(s.ctx, path("k")); return err },
						s3test.PutObject:            func() error { return s.Put(s.ctx, path("k"), bytes.NewReader([]byte("x"))) },
						s3test.DeleteObject:         func() error { return s.Delete(s.ctx, path("k")) },
						s3test.ListObjectsV2: func() error {
							for _, err := range s.List(s.ctx, path("")) {
								return err
							}
							return nil
						},
					}
					for op, f := range calls {
						err := f()
						require.Error(t, err)
						e, ok := errors.AsType[*s3fs.OpError](err)
						require.True(t, ok)
						assert.Equal(t, retries+1, s.srv.Counts().Total(op), "%s", op)
						assert.Equal(t, retries+1, e.Attempts, "%s", op)
						assert.Equal(t, retrymode.Throttle, e.Class, "%s", op)
					}
				})
			})
		}
	}
}

func TestAdapter_PublishingCallsGoAheadOfParts(t *testing.T) {
	bubble(t, options{settings: func(s *s3fs.Settings) { s.MaxConnections = 4 }}, func(t *testing.T, s store) {
		s.srv.PutObject("b", "k", []byte("x"), nil)
		defer s.srv.Control(s3test.Match{Op: s3test.UploadPart}, s3test.Always(s3test.Delay(25*time.Second)))()
		id, err := s.API().Create(s.ctx, target, "t")
		require.NoError(t, err)
		done := make(chan error)
		for i := range 12 {
			go func() {
				_, err := s.API().UploadPart(s.ctx, target, id, int32(i+1), bytes.NewReader([]byte("x")), 1, multipart.Checksum([]byte("x")))
				done <- err
			}()
		}
		time.Sleep(time.Second)
		start := time.Now()
		_, err = s.API().Head(s.ctx, target)
		require.NoError(t, err)
		_, err = s.API().Put(s.ctx, multipart.Target{Bucket: "b", Key: "small"}, "t", bytes.NewReader([]byte("x")), 1, multipart.Checksum([]byte("x")))
		require.NoError(t, err)
		assert.Less(t, time.Since(start), time.Second)
		for range 12 {
			require.NoError(t, <-done)
		}
	})
}
