package s3test_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestMatch_Selects(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		for _, c := range []struct {
			match s3test.Match
			want  []int // which of the puts k1, k2, k3, x1, x2, x3 are refused
		}{
			{s3test.Match{}, []int{0, 1, 2, 3, 4, 5}},
			{s3test.Match{Op: s3test.GetObject}, nil},
			{s3test.Match{Op: s3test.PutObject, Bucket: "b", KeyPrefix: "x"}, []int{3, 4, 5}},
			{s3test.Match{Bucket: "other"}, nil},
			{s3test.Match{Nth: 2}, []int{1}},
			{s3test.Match{First: 2}, []int{0, 1}},
			{s3test.Match{Every: 3}, []int{2, 5}},
			{s3test.Match{KeyPrefix: "x", Nth: 3}, []int{5}},
			{s3test.Match{First: 4, Every: 2}, []int{1, 3}},
			{s3test.Match{Part: 1}, nil},
		} {
			remove := srv.Control(c.match, s3test.Always(s3test.SlowDown()))
			var refused []int
			for i, key := range []string{"k1", "k2", "k3", "x1", "x2", "x3"} {
				if _, err := put(t, client, key, "x"); err != nil {
					requireCode(t, err, 503, "SlowDown")
					refused = append(refused, i)
				}
			}
			assert.Equal(t, c.want, refused, "%+v", c.match)
			remove()
			remove()
		}
	})
}

func TestControl_TheFirstReplyCountsAndAllCountRequests(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		var seen []string
		ask := func(name string, answer func(n int) *s3test.Reply) func(s3test.Request) *s3test.Reply {
			return func(r s3test.Request) *s3test.Reply {
				seen = append(seen, name)
				return answer(r.N)
			}
		}
		srv.Control(s3test.Match{}, ask("a", func(int) *s3test.Reply { return nil }))
		srv.Control(s3test.Match{}, ask("b", func(n int) *s3test.Reply {
			if n == 1 {
				return s3test.Status(500, "InternalError")
			}
			return nil
		}))
		srv.Control(s3test.Match{Nth: 2}, ask("c", func(int) *s3test.Reply { return s3test.EmptyBody503() }))
		_, err := put(t, client, "k", "x")
		requireCode(t, err, 500, "InternalError")
		_, err = put(t, client, "k", "x")
		require.Equal(t, 503, statusOf(err))
		_, err = put(t, client, "k", "x")
		require.NoError(t, err)
		require.Equal(t, "a b a b c a b", strings.Join(seen, " "))
	})
}

func TestControl_SeesTheRequestBeforeItsEffect(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, _ *s3.Client) {
		client := newClient(srv, func(o *s3.Options) { o.Retryer = retry.NewStandard() })
		id := create(t, client, "k", fullCRC)
		var got []s3test.Request
		srv.Control(s3test.Match{Op: s3test.UploadPart}, func(r s3test.Request) *s3test.Reply {
			assert.Len(t, srv.Uploads("b")[0].Parts, 0, "a control may use the server")
			r.Header.Set("x-amz-checksum-crc64nvme", "spoilt") // a copy: without effect
			got = append(got, r)
			if r.Attempt == 1 {
				return s3test.SlowDown()
			}
			return nil
		})
		_, err := uploadPart(t, client, "k", id, 7, "data", func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = aws.String(crc("data")) })
		require.NoError(t, err)
		require.Len(t, got, 2)
		for i, r := range got {
			assert.Equal(t, i+1, r.Attempt)
			assert.Equal(t, i+1, r.N)
			assert.EqualValues(t, 7, r.Part)
			assert.EqualValues(t, 4, r.Size)
			assert.Equal(t, "b k upload-1", r.Bucket+" "+r.Key+" "+r.Upload)
			assert.Equal(t, *id, r.UploadID)
			assert.Equal(t, "PUT", r.Method)
			assert.Equal(t, "7", r.Query.Get("partNumber"))
		}
	})
}

func TestControl_HoldsARequestBackWhileOthersGoOn(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		release := make(chan struct{})
		srv.Control(s3test.Match{KeyPrefix: "held"}, func(s3test.Request) *s3test.Reply {
			<-release
			return nil
		})
		done := make(chan error)
		go func() {
			_, err := put(t, client, "held", "x")
			done <- err
		}()
		synctest.Wait()
		_, err := put(t, client, "other", "x")
		require.NoError(t, err)
		require.Equal(t, []string{"other"}, srv.Keys("b"))
		close(release)
		require.NoError(t, <-done)
		require.Equal(t, "PutObject b/held size=1 -> 200\nPutObject b/other size=1 -> 200\n", srv.Trace(), "order of arrival")
	})
}

func TestReplies_WhatTheClientSeesAndWhatHappens(t *testing.T) {
	for name, c := range map[string]struct {
		reply  *s3test.Reply
		status int
		code   string
		effect bool
		trace  string
	}{
		"slow down":              {s3test.SlowDown(), 503, "SlowDown", false, "503 SlowDown"},
		"status and code":        {s3test.Status(409, "ConditionalRequestConflict"), 409, "ConditionalRequestConflict", false, "409 ConditionalRequestConflict"},
		"empty 503":              {s3test.EmptyBody503(), 503, "ServiceUnavailable", false, "503"},
		"raw":                    {s3test.Raw(502, "text/html", "<html>bad gateway"), 502, "", false, "502"},
		"error in 200":           {s3test.ErrorIn200("InternalError"), 200, "InternalError", false, "200 InternalError"},
		"reset before":           {s3test.ResetBefore(), 0, "", false, "reset"},
		"reset after":            {s3test.ResetAfter(), 0, "", true, "200 (answer lost)"},
		"no body":                {s3test.NoBody200(), 200, "ok", false, "200"},
		"no body, effect":        {s3test.NoBody200().WithEffect(), 200, "ok", true, "200 (after the effect)"},
		"complaint after effect": {s3test.SlowDown().WithEffect(), 503, "SlowDown", true, "503 SlowDown (after the effect)"},
		"lie":                    {s3test.DropEffect200(), 200, "ok", false, "200 (no effect)"},
		"delay":                  {s3test.Delay(time.Minute), 200, "ok", true, "200"},
		"early":                  {s3test.SlowDown().Early(), 503, "SlowDown", false, "503 SlowDown"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
				defer srv.Control(s3test.Match{Nth: 1}, s3test.Always(c.reply))()
				out, err := put(t, client, "k", "x")
				if c.code == "ok" {
					require.NoError(t, err)
					lied := name == "lie" || name == "delay"
					require.Equal(t, lied, out.ETag != nil)
				} else {
					require.Error(t, err)
					require.Equal(t, c.code, codeOf(err), err.Error())
					if c.status != 200 { // the SDK turns an error in a 200 into a 5xx of its own
						require.Equal(t, c.status, statusOf(err))
					}
				}
				require.Equal(t, c.effect, len(srv.Keys("b")) == 1)
				require.Equal(t, "PutObject b/k size=1 -> "+c.trace+"\n", srv.Trace())
				_, err = put(t, client, "k", "x")
				require.NoError(t, err, "the client goes on afterwards")
			})
		})
	}
}

func TestReplies_HEADGetsStatusAndHeadersOnly(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		srv.PutObject("b", "k", []byte("x"), nil)
		replies := []*s3test.Reply{s3test.SlowDown().WithHeader("Retry-After", "7"), s3test.EmptyBody503(), s3test.Status(429, "TooManyRequests"), s3test.CutBody(0)}
		for i, r := range replies {
			remove := srv.Control(s3test.Match{}, s3test.Always(r))
			res := do(t, srv, "HEAD", "/b/k", "", nil)
			require.Equal(t, []int{503, 503, 429, 200}[i], res.StatusCode)
			require.Empty(t, bodyOf(t, res))
			if i == 0 {
				require.Equal(t, "7", res.Header.Get("Retry-After"))
			}
			remove()
		}
		// A fresh connection: net/http repeats a HEAD on a used one.
		defer srv.Control(s3test.Match{}, s3test.Always(s3test.ResetAfter()))()
		_, err := head(t, client, "k")
		require.ErrorContains(t, err, "EOF")
	})
}

func TestCutBody_PromisesMoreThanItSends(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		srv.PutObject("b", "k", []byte("0123456789"), nil)
		defer srv.Control(s3test.Match{Op: s3test.GetObject, Nth: 1}, s3test.Always(s3test.CutBody(4)))()
		out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		require.NoError(t, err)
		require.EqualValues(t, 10, *out.ContentLength)
		body, err := io.ReadAll(out.Body)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, "0123", string(body))
		require.NoError(t, out.Body.Close())
		_, rest, err := get(t, client, "k", func(in *s3.GetObjectInput) { in.Range, in.IfMatch = aws.String("bytes=4-"), out.ETag })
		require.NoError(t, err)
		require.Equal(t, "456789", rest)
		require.Equal(t, "GetObject b/k -> 200 (cut at 4)\nGetObject b/k range=bytes=4- if-match=etag -> 206\n", srv.Trace())
	})
}

func TestDelay_TakesVirtualTimeAndNoEffectWhenTheClientLeaves(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		srv.Control(s3test.Match{KeyPrefix: "slow"}, s3test.Always(s3test.Delay(time.Hour)))
		srv.Control(s3test.Match{KeyPrefix: "late"}, s3test.Always(s3test.Delay(0).AnswerAfter(time.Hour)))
		start := time.Now()
		_, err := put(t, client, "slow", "x")
		require.NoError(t, err)
		require.Equal(t, time.Hour, time.Since(start))

		for _, key := range []string{"slow/gone", "late/gone"} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String(key), Body: strings.NewReader("x")})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		synctest.Wait()
		require.Equal(t, []string{"late/gone", "slow"}, srv.Keys("b"))
		require.Equal(t, "PutObject b/slow size=1 -> 200\nPutObject b/slow/gone size=1 -> client gone\nPutObject b/late/gone size=1 -> 200\n", srv.Trace())
	})
}

func TestDropEffect200_ALyingStoreForEveryWrite(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "m", []string{"one"}, withCRC)
		srv.PutObject("b", "old", []byte("x"), nil)
		remove := srv.Control(s3test.Match{}, s3test.Always(s3test.DropEffect200()))

		out, err := complete(t, client, "m", id, parts)
		require.NoError(t, err)
		require.Equal(t, etagOfParts([]string{"one"}), *out.ETag)
		_, err = complete(t, client, "m", aws.String("nonsense"), parts)
		require.NoError(t, err, "versitygw's false success: no such upload, and 200")
		part, err := uploadPart(t, client, "m", id, 2, "two", func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = aws.String(crc("two")) })
		require.NoError(t, err)
		require.Equal(t, crc("two"), *part.ChecksumCRC64NVME)
		fake := create(t, client, "n", fullCRC)
		_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("old")})
		require.NoError(t, err)
		del, err := client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("b"), Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("old")}}}})
		require.NoError(t, err)
		require.Len(t, del.Deleted, 1)
		_, err = client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: aws.String("b"), Key: aws.String("m"), UploadId: id})
		require.NoError(t, err)
		_, err = client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("new")})
		require.NoError(t, err)
		_, err = head(t, client, "m")
		requireCode(t, err, 404, "NotFound")

		remove()
		require.Equal(t, []string{"old"}, srv.Keys("b"))
		require.Len(t, srv.Uploads("b"), 1)
		require.Len(t, srv.Uploads("b")[0].Parts, 1)
		require.Nil(t, srv.Objects("new"))
		_, err = uploadPart(t, client, "n", fake, 1, "x")
		requireCode(t, err, 404, "NoSuchUpload")
	})
}

func TestErrorIn200_TheSDKRetriesComplete(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "m", []string{"one"}, noCRC)
		srv.Control(s3test.Match{Op: s3test.CompleteMultipartUpload, First: 2}, s3test.Always(s3test.ErrorIn200("InternalError")))
		retrying := newClient(srv, func(o *s3.Options) { o.Retryer = retry.NewStandard() })
		_, err := complete(t, retrying, "m", id, parts)
		require.NoError(t, err)
		require.Equal(t, 3, srv.Counts().Total(s3test.CompleteMultipartUpload))
	})
}

func TestThrottleRate_LetsTheQuotaThrough(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		srv.Control(s3test.Match{Op: s3test.PutObject}, s3test.ThrottleRate(10, time.Second))
		for range 300 { // 100 a second for three seconds
			_, _ = put(t, client, "k", "x")
			time.Sleep(10 * time.Millisecond)
		}
		require.Equal(t, 30, srv.Counts()[s3test.PutObject][200])
		require.Equal(t, 270, srv.Counts().Status(503))
	})
}

func TestControl_ConcurrentRequestsAreCountedExactly(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		var asked atomic.Int32
		srv.Control(s3test.Match{Every: 4}, func(s3test.Request) *s3test.Reply {
			asked.Add(1)
			return s3test.SlowDown()
		})
		done := make(chan struct{})
		for range 16 {
			go func() {
				for range 10 {
					_, _ = put(t, client, "k", "x")
				}
				done <- struct{}{}
			}()
		}
		for range 16 {
			<-done
		}
		require.EqualValues(t, 40, asked.Load())
		require.Equal(t, 40, srv.Counts().Status(503))
		require.Equal(t, 160, srv.Counts().Total())
	})
}
