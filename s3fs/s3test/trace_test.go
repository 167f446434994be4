package s3test_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestTrace_ReadsLikeTheProtocol(t *testing.T) {
	bubble(t, s3test.Options{MinPartSize: 1}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		b := aws.String("b")
		id := create(t, client, "dir/k", fullCRC, func(in *s3.CreateMultipartUploadInput) {
			in.Metadata = map[string]string{"sluice-token": "random", "a": "1"}
		})
		srv.Control(s3test.Match{Op: s3test.UploadPart, Nth: 1}, s3test.Always(s3test.SlowDown()))
		_, _ = uploadPart(t, client, "dir/k", id, 1, "123456789", func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = aws.String("rosUhgp5mIg=") })
		part, err := uploadPart(t, client, "dir/k", id, 1, "123456789", func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = aws.String("rosUhgp5mIg=") })
		require.NoError(t, err)
		_, err = client.ListParts(t.Context(), &s3.ListPartsInput{Bucket: b, Key: aws.String("dir/k"), UploadId: id, PartNumberMarker: aws.String("0"), MaxParts: aws.Int32(5)})
		require.NoError(t, err)
		_, err = complete(t, client, "dir/k", id, completed(part.ETag), func(in *s3.CompleteMultipartUploadInput) {
			in.ChecksumCRC64NVME, in.MpuObjectSize, in.IfNoneMatch = aws.String("rosUhgp5mIg="), aws.Int64(9), aws.String("*")
		})
		require.NoError(t, err)
		_, _ = complete(t, client, "dir/k", aws.String("nonsense"), completed(part.ETag))
		_, _ = head(t, client, "dir/k")
		_, _ = head(t, client, "not there")
		_, _, _ = get(t, client, "dir/k", func(in *s3.GetObjectInput) { in.Range = aws.String("bytes=-2") })
		_, _ = put(t, client, "line\nbreak", "x", func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") })
		_, _ = client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: b, Prefix: aws.String("dir/"), Delimiter: aws.String("/"), MaxKeys: aws.Int32(7)})
		_, _ = client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: b, KeyMarker: aws.String("k"), UploadIdMarker: id})
		_, _ = client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("missing")})
		_, _ = client.GetBucketAcl(t.Context(), &s3.GetBucketAclInput{Bucket: b})
		_, _ = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: b, Key: aws.String("dir/k")})
		require.Equal(t, strings.TrimLeft(`
CreateMultipartUpload b/dir/k checksum=CRC64NVME/FULL_OBJECT meta=a,sluice-token -> 200 upload-1
UploadPart b/dir/k upload=upload-1 part=1 size=9 crc64nvme=rosUhgp5mIg= -> 503 SlowDown
UploadPart b/dir/k upload=upload-1 part=1 size=9 crc64nvme=rosUhgp5mIg= -> 200
ListParts b/dir/k upload=upload-1 part-number-marker=0 max-parts=5 -> 200
CompleteMultipartUpload b/dir/k upload=upload-1 parts=1 size=9 crc64nvme=rosUhgp5mIg= if-none-match=* -> 200
CompleteMultipartUpload b/dir/k upload=unknown parts=1 -> 404 NoSuchUpload
HeadObject b/dir/k -> 200
HeadObject b/"not there" -> 404
GetObject b/dir/k range=bytes=-2 -> 206
PutObject b/"line\nbreak" size=1 if-none-match=* -> 200
ListObjectsV2 b prefix=dir/ delimiter=/ max-keys=7 -> 200
ListMultipartUploads b key-marker=k continued -> 200
HeadBucket missing -> 404
Unsupported GET b -> 501 NotImplemented
DeleteObject b/dir/k -> 204
`, "\n"), srv.Trace())

		srv.ResetTrace()
		require.Empty(t, srv.Trace())
		create(t, client, "k")
		require.Equal(t, "CreateMultipartUpload b/k -> 200 upload-2\n", srv.Trace(), "names never repeat")
		counts := srv.Counts()
		require.Equal(t, map[int]int{200: 1, 503: 1}, counts[s3test.UploadPart])
		require.Equal(t, 16, counts.Total())
		require.Equal(t, 4, counts.Total(s3test.HeadObject, s3test.CompleteMultipartUpload))
	})
}

func TestTrace_IsTheSameInEveryRun(t *testing.T) {
	run := func() (trace, id string) {
		bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
			upID, parts := upload(t, client, "k", []string{"x"}, withCRC)
			_, err := complete(t, client, "k", upID, parts)
			require.NoError(t, err)
			trace, id = srv.Trace(), *upID
		})
		return trace, id
	}
	trace1, id1 := run()
	trace2, id2 := run()
	require.Equal(t, trace1, trace2)
	require.Equal(t, id1, id2)
	require.NotContains(t, id1, "upload", "ids mean nothing")
}

func TestNoTrace_StillCounts(t *testing.T) {
	bubble(t, s3test.Options{NoTrace: true}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := put(t, client, "k", "x")
		require.NoError(t, err)
		require.Empty(t, srv.Trace())
		require.Equal(t, 1, srv.Counts()[s3test.PutObject][200])
	})
}
