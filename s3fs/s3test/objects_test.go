package s3test_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestPutObject_WhatIsStoredComesBack(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		sum := md5.Sum([]byte("hello"))
		etag := `"` + hex.EncodeToString(sum[:]) + `"`

		out, err := put(t, client, "dir/k", "hello", func(in *s3.PutObjectInput) {
			in.ContentType, in.CacheControl = aws.String("text/plain"), aws.String("no-cache")
			in.ContentEncoding = aws.String("gzip")
			in.Metadata = map[string]string{"sluice-token": "t 1"}
		})
		require.NoError(t, err)
		require.Equal(t, etag, *out.ETag)

		got, body, err := get(t, client, "dir/k")
		require.NoError(t, err)
		require.Equal(t, "hello", body)
		require.Equal(t, etag, *got.ETag)
		require.Equal(t, "text/plain", *got.ContentType)
		require.Equal(t, "no-cache", *got.CacheControl)
		require.Equal(t, "gzip", *got.ContentEncoding)
		require.Equal(t, map[string]string{"sluice-token": "t 1"}, got.Metadata)

		h, err := head(t, client, "dir/k")
		require.NoError(t, err)
		require.EqualValues(t, 5, *h.ContentLength)
		require.Equal(t, etag, *h.ETag)
		require.Equal(t, time.Now().Truncate(time.Second).UTC(), h.LastModified.UTC())

		o, ok := srv.Object("b", "dir/k")
		require.True(t, ok)
		require.Equal(t, "hello", string(o.Data))
		require.Equal(t, "text/plain", o.ContentType)
		require.Equal(t, "t 1", o.Metadata["sluice-token"])
		require.Nil(t, o.PartSizes)
	})
}

func TestKeys_AreTakenAsTheyAre(t *testing.T) {
	bubble(t, s3test.Options{AccessKey: accessKey, SecretKey: secretKey}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		keys := []string{"a//b", "../up", "a b+c", "ünï/日本", "%2F%25", "dir/", "x", "x/child", "q?a=b&c#d", "dt=2024-01-01/p!'()*$&,;:@"}
		for _, key := range keys {
			_, err := put(t, client, key, "of "+key)
			require.NoError(t, err, key)
		}
		for _, key := range keys {
			_, body, err := get(t, client, key)
			require.NoError(t, err, key)
			assert.Equal(t, "of "+key, body)
		}
		require.ElementsMatch(t, keys, srv.Keys("b"))
	})
}

func TestPutObject_Conditions(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		ifNone := func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }
		ifMatch := func(etag string) func(in *s3.PutObjectInput) {
			return func(in *s3.PutObjectInput) { in.IfMatch = aws.String(etag) }
		}
		_, err := put(t, client, "k", "0", ifMatch(`"abc"`))
		requireCode(t, err, 404, "NoSuchKey")
		first, err := put(t, client, "k", "1", ifNone)
		require.NoError(t, err)
		_, err = put(t, client, "k", "2", ifNone)
		requireCode(t, err, 412, "PreconditionFailed")
		_, err = put(t, client, "k", "3", ifMatch(`"abc"`))
		requireCode(t, err, 412, "PreconditionFailed")
		_, err = put(t, client, "k", "4", ifMatch(*first.ETag))
		require.NoError(t, err)
		o, _ := srv.Object("b", "k")
		require.Equal(t, "4", string(o.Data))
		_, err = put(t, client, "k", "5", func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String(`"abc"`) })
		requireCode(t, err, 501, "NotImplemented")
	})
}

func TestPutObject_RaceOfConditionalWritesHasOneWinner(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		errs := make(chan error)
		for range 32 {
			go func() {
				_, err := put(t, client, "k", "x", func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") })
				errs <- err
			}()
		}
		won := 0
		for range 32 {
			if err := <-errs; err == nil {
				won++
			} else {
				assert.Equal(t, "PreconditionFailed", codeOf(err))
			}
		}
		require.Equal(t, 1, won)
		require.Equal(t, 31, srv.Counts().Status(412))
	})
}

func TestPutObject_RefusesWhatS3Refuses(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := put(t, client, strings.Repeat("k", 1025), "x")
		requireCode(t, err, 400, "KeyTooLongError")
		_, err = put(t, client, "k", "x", func(in *s3.PutObjectInput) {
			in.Metadata = map[string]string{"big": strings.Repeat("x", 2048)}
		})
		requireCode(t, err, 400, "MetadataTooLarge")
		_, err = put(t, client, "k", "x", func(in *s3.PutObjectInput) { in.Bucket = aws.String("missing") })
		requireCode(t, err, 404, "NoSuchBucket")

		wrong := md5.Sum([]byte("y"))
		_, err = put(t, client, "k", "x", func(in *s3.PutObjectInput) {
			in.ContentMD5 = aws.String(base64.StdEncoding.EncodeToString(wrong[:]))
		})
		requireCode(t, err, 400, "BadDigest")
		_, err = put(t, client, "k", "x", func(in *s3.PutObjectInput) { in.ContentMD5 = aws.String("xx") })
		requireCode(t, err, 400, "InvalidDigest")
		res := do(t, srv, "PUT", "/b/k", "x", map[string]string{"x-amz-content-sha256": strings.Repeat("0", 64)})
		require.Equal(t, 400, res.StatusCode)
		require.Contains(t, bodyOf(t, res), "<Code>XAmzContentSHA256Mismatch</Code>")

		right := md5.Sum([]byte("x"))
		require.Empty(t, srv.Keys("b"), "a refused write has no effect")
		_, err = put(t, client, "k", "x", func(in *s3.PutObjectInput) {
			in.ContentMD5 = aws.String(base64.StdEncoding.EncodeToString(right[:]))
		})
		require.NoError(t, err)
	})
}

func TestGetObject_Ranges(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		srv.PutObject("b", "k", []byte("0123456789"), nil)
		srv.PutObject("b", "empty", nil, nil)
		for _, c := range []struct{ key, spec, want, contentRange string }{
			{"k", "bytes=0-3", "0123", "bytes 0-3/10"},
			{"k", "bytes=9-9", "9", "bytes 9-9/10"},
			{"k", "bytes=7-", "789", "bytes 7-9/10"},
			{"k", "bytes=7-99", "789", "bytes 7-9/10"},
			{"k", "bytes=-3", "789", "bytes 7-9/10"},
			{"k", "bytes=-99", "0123456789", "bytes 0-9/10"},
			{"k", "bytes=5-3", "0123456789", ""},
			{"k", "bytes=0-1,3-4", "0123456789", ""},
			{"k", "lines=1-2", "0123456789", ""},
		} {
			out, body, err := get(t, client, c.key, func(in *s3.GetObjectInput) {
				in.Range, in.ChecksumMode = aws.String(c.spec), types.ChecksumModeEnabled
			})
			require.NoError(t, err, c.spec)
			assert.Equal(t, c.want, body, c.spec)
			assert.Equal(t, c.contentRange, aws.ToString(out.ContentRange), c.spec)
			assert.Equal(t, c.contentRange == "", out.ChecksumCRC64NVME != nil, "the checksum is the whole object's: %s", c.spec)
		}
		for key, specs := range map[string][]string{"k": {"bytes=10-", "bytes=10-12", "bytes=-0"}, "empty": {"bytes=0-", "bytes=-1"}} {
			for _, spec := range specs {
				_, _, err := get(t, client, key, func(in *s3.GetObjectInput) { in.Range = aws.String(spec) })
				requireCode(t, err, 416, "InvalidRange")
			}
		}
	})
}

func TestGetObject_Conditions(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		out, err := put(t, client, "k", "x")
		require.NoError(t, err)
		at := time.Now()
		time.Sleep(time.Hour)

		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.IfMatch = out.ETag })
		require.NoError(t, err)
		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.IfMatch = aws.String(`"other"`) })
		requireCode(t, err, 412, "PreconditionFailed")
		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.IfNoneMatch = out.ETag })
		require.Equal(t, 304, statusOf(err))
		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.IfNoneMatch = aws.String(`"other"`) })
		require.NoError(t, err)
		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.IfModifiedSince = aws.Time(at) })
		require.Equal(t, 304, statusOf(err))
		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.IfUnmodifiedSince = aws.Time(at.Add(-time.Minute)) })
		requireCode(t, err, 412, "PreconditionFailed")
		_, _, err = get(t, client, "missing")
		requireCode(t, err, 404, "NoSuchKey")
		_, err = head(t, client, "missing")
		requireCode(t, err, 404, "NotFound")
	})
}

func TestDelete_OneAndMany(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		for _, k := range []string{"a", "b", "c", "d"} {
			srv.PutObject("b", k, []byte(k), nil)
		}
		for range 2 { // deleting what is not there succeeds too
			_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("a")})
			require.NoError(t, err)
		}
		_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String("b"), Key: aws.String("b"), IfMatch: aws.String(`"x"`)})
		requireCode(t, err, 412, "PreconditionFailed")

		out, err := client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: aws.String("b"), Delete: &types.Delete{Objects: []types.ObjectIdentifier{
			{Key: aws.String("b")}, {Key: aws.String("c")}, {Key: aws.String("missing")}, {Key: aws.String("d"), ETag: aws.String("other")},
		}}})
		require.NoError(t, err)
		require.Len(t, out.Deleted, 3)
		require.Len(t, out.Errors, 1)
		require.Equal(t, "PreconditionFailed", *out.Errors[0].Code)
		require.Equal(t, []string{"d"}, srv.Keys("b"))
		require.True(t, srv.DeleteObject("b", "d"))
		require.False(t, srv.DeleteObject("b", "d"))

		res := do(t, srv, "POST", "/b?delete", "<Delete><Object><Key>a</Key></Object></Delete>", nil)
		require.Equal(t, 400, res.StatusCode)
		require.Contains(t, bodyOf(t, res), "Content-MD5", "S3 wants this request to be protected")
		res = do(t, srv, "POST", "/b?delete", "<Delete></Delete>", nil)
		require.Contains(t, bodyOf(t, res), "<Code>MalformedXML</Code>")
	})
}

func TestBuckets(t *testing.T) {
	bubble(t, s3test.Options{Region: "eu-west-1"}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("new")})
		require.NoError(t, err)
		_, err = client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("new")})
		requireCode(t, err, 409, "BucketAlreadyOwnedByYou")
		out, err := client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("new")})
		require.NoError(t, err)
		require.Equal(t, "eu-west-1", *out.BucketRegion)
		list, err := client.ListBuckets(t.Context(), &s3.ListBucketsInput{})
		require.NoError(t, err)
		require.Len(t, list.Buckets, 2)
		srv.CreateBucket("direct")
		srv.CreateBucket("direct")
		require.NotNil(t, srv.Objects("direct"))

		srv.PutObject("new", "k", nil, nil)
		_, err = client.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: aws.String("new")})
		requireCode(t, err, 409, "BucketNotEmpty")
		srv.DeleteObject("new", "k")
		_, err = client.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: aws.String("new")})
		require.NoError(t, err)
		_, err = client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("new")})
		requireCode(t, err, 404, "NotFound")
	})
}

func TestUnsupportedOperations_SayNotImplementedAndDoNothing(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket: aws.String("fresh"), VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
		})
		requireCode(t, err, 501, "NotImplemented")
		_, err = client.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), CopySource: aws.String("b/x")})
		requireCode(t, err, 501, "NotImplemented")
		require.Equal(t, 501, do(t, srv, "PATCH", "/b/k", "", nil).StatusCode)
		require.Empty(t, srv.Keys("b"))
		require.Nil(t, srv.Objects("fresh"))
	})
}

func TestVirtualHostStyle_NamesTheBucketInFront(t *testing.T) {
	bubble(t, s3test.Options{AccessKey: accessKey, SecretKey: secretKey, Buckets: []string{"logs"}}, func(t *testing.T, srv *s3test.Server, _ *s3.Client) {
		client := newClient(srv, func(o *s3.Options) { o.UsePathStyle = false })
		_, err := put(t, client, "k", "x", func(in *s3.PutObjectInput) { in.Bucket = aws.String("logs") })
		require.NoError(t, err)
		require.Equal(t, []string{"k"}, srv.Keys("logs"))
	})
}

func TestHTTPDate_IsTheBubblesClock(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, _ *s3.Client) {
		time.Sleep(90 * time.Minute)
		res := do(t, srv, "HEAD", "/b", "", nil)
		require.Equal(t, time.Now().UTC().Format(http.TimeFormat), res.Header.Get("Date"))
	})
}
