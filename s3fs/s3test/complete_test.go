package s3test_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestComplete_RefusesWhatS3Refuses(t *testing.T) {
	bubble(t, s3test.Options{MinPartSize: 4}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "k", []string{"aaaa", "bbbb", "cc"}, withCRC)
		part := func(i int, change func(*types.CompletedPart)) []types.CompletedPart {
			out := append([]types.CompletedPart(nil), parts...)
			change(&out[i])
			return out
		}
		swapped := []types.CompletedPart{parts[1], parts[0], parts[2]}
		twice := []types.CompletedPart{parts[0], parts[0]}
		for name, c := range map[string]struct {
			parts  []types.CompletedPart
			change func(*s3.CompleteMultipartUploadInput)
			code   string
		}{
			"wrong ETag":           {parts: part(1, func(p *types.CompletedPart) { p.ETag = parts[0].ETag }), code: "InvalidPart"},
			"part not there":       {parts: part(2, func(p *types.CompletedPart) { p.PartNumber = aws.Int32(9) }), code: "InvalidPart"},
			"wrong part checksum":  {parts: part(1, func(p *types.CompletedPart) { p.ChecksumCRC64NVME = parts[0].ChecksumCRC64NVME }), code: "InvalidPart"},
			"other part checksum":  {parts: part(1, func(p *types.CompletedPart) { p.ChecksumCRC64NVME, p.ChecksumCRC32 = nil, aws.String("AAAAAA==") }), code: "InvalidPart"},
			"wrong order":          {parts: swapped, code: "InvalidPartOrder"},
			"same part twice":      {parts: twice, code: "InvalidPartOrder"},
			"no parts":             {parts: nil, code: "MalformedXML"},
			"small part inside":    {parts: append(append([]types.CompletedPart(nil), parts...), types.CompletedPart{PartNumber: aws.Int32(4), ETag: parts[2].ETag}), code: "EntityTooSmall"},
			"wrong whole checksum": {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.ChecksumCRC64NVME = aws.String(crc("other")) }, code: "BadDigest"},
			"other algorithm":      {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.ChecksumCRC32 = aws.String("AAAAAA==") }, code: "InvalidRequest"},
			"other type":           {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.ChecksumType = types.ChecksumTypeComposite }, code: "BadDigest"},
			"wrong size":           {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.MpuObjectSize = aws.Int64(11) }, code: "InvalidRequest"},
			"unknown upload":       {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.UploadId = aws.String("nonsense") }, code: "NoSuchUpload"},
			"upload of other key":  {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.Key = aws.String("other") }, code: "NoSuchUpload"},
			"If-Match, no object":  {parts: parts, change: func(in *s3.CompleteMultipartUploadInput) { in.IfMatch = aws.String(`"x"`) }, code: "NoSuchKey"},
		} {
			if name == "small part inside" {
				_, err := uploadPart(t, client, "k", id, 4, "cc")
				require.NoError(t, err)
			}
			change := c.change
			if change == nil {
				change = func(*s3.CompleteMultipartUploadInput) {}
			}
			_, err := complete(t, client, "k", id, c.parts, change)
			assert.Equal(t, c.code, codeOf(err), name)
		}
		require.Empty(t, srv.Keys("b"), "no refused Complete publishes anything")

		_, err := complete(t, client, "k", id, parts[:2]) // a subset is fine, and the upload is still there
		require.NoError(t, err)
		o, _ := srv.Object("b", "k")
		require.Equal(t, "aaaabbbb", string(o.Data))
		require.Equal(t, []int64{4, 4}, o.PartSizes)
	})
}

func TestComplete_TheDefaultLimitIsFiveMiB(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, _ *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "k", []string{pattern(5<<20-1, 0), "x"}, noCRC)
		_, err := complete(t, client, "k", id, parts)
		requireCode(t, err, 400, "EntityTooSmall")
	})
}

func TestComplete_IfNoneMatch(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		ifNone := func(in *s3.CompleteMultipartUploadInput) { in.IfNoneMatch = aws.String("*") }
		srv.PutObject("b", "k", []byte("foreign"), nil)
		id, parts := upload(t, client, "k", []string{"mine"}, noCRC)
		_, err := complete(t, client, "k", id, parts, ifNone)
		requireCode(t, err, 412, "PreconditionFailed")
		require.Len(t, srv.Uploads("b"), 1)

		srv.DeleteObject("b", "k")
		_, err = complete(t, client, "k", id, parts, ifNone)
		require.NoError(t, err)
		_, err = complete(t, client, "k", id, parts, ifNone)
		requireCode(t, err, 412, "PreconditionFailed")
	})
}

func TestComplete_Repeated(t *testing.T) {
	bubble(t, s3test.Options{MinPartSize: 1}, func(t *testing.T, _ *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "k", []string{"a", "b"}, noCRC)
		first, err := complete(t, client, "k", id, parts)
		require.NoError(t, err)
		again, err := complete(t, client, "k", id, parts)
		require.NoError(t, err, "the same request again is a success again")
		require.Equal(t, *first.ETag, *again.ETag)
		require.Equal(t, *first.ChecksumCRC64NVME, *again.ChecksumCRC64NVME)
		_, err = complete(t, client, "k", id, parts[:1])
		requireCode(t, err, 404, "NoSuchUpload")
	})
	bubble(t, s3test.Options{Quirks: s3test.Quirks{CompleteRepeat404: true}}, func(t *testing.T, _ *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "k", []string{"a"}, noCRC)
		_, err := complete(t, client, "k", id, parts)
		require.NoError(t, err)
		_, err = complete(t, client, "k", id, parts)
		requireCode(t, err, 404, "NoSuchUpload")
	})
}

func TestComplete_ConcurrentOnesAllSucceed(t *testing.T) {
	bubble(t, s3test.Options{MinPartSize: 1}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "k", []string{pattern(100_000, 1), pattern(100_000, 2)}, noCRC)
		errs := make(chan error)
		for range 8 {
			go func() {
				_, err := complete(t, client, "k", id, parts)
				errs <- err
			}()
		}
		for range 8 {
			assert.NoError(t, <-errs)
		}
		require.Equal(t, 8, srv.Counts()[s3test.CompleteMultipartUpload][200])
	})
}
