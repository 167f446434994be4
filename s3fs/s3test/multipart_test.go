package s3test_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

type checks uint8

const (
	noCRC checks = iota
	withCRC
)

func create(t *testing.T, client *s3.Client, key string, change ...func(*s3.CreateMultipartUploadInput)) *string {
	t.Helper()
	in := &s3.CreateMultipartUploadInput{Bucket: aws.String("b"), Key: aws.String(key)}
	for _, f := range change {
		f(in)
	}
	out, err := client.CreateMultipartUpload(t.Context(), in)
	require.NoError(t, err)
	return out.UploadId
}

func fullCRC(in *s3.CreateMultipartUploadInput) {
	in.ChecksumAlgorithm, in.ChecksumType = types.ChecksumAlgorithmCrc64nvme, types.ChecksumTypeFullObject
}

func uploadPart(t *testing.T, client *s3.Client, key string, id *string, n int32, data string, change ...func(*s3.UploadPartInput)) (*s3.UploadPartOutput, error) {
	t.Helper()
	in := &s3.UploadPartInput{Bucket: aws.String("b"), Key: aws.String(key), UploadId: id, PartNumber: &n, Body: strings.NewReader(data)}
	for _, f := range change {
		f(in)
	}
	return client.UploadPart(t.Context(), in)
}

// upload creates an upload and sends its parts, numbered from 1.
func upload(t *testing.T, client *s3.Client, key string, data []string, c checks) (id *string, parts []types.CompletedPart) {
	t.Helper()
	if c == withCRC {
		id = create(t, client, key, fullCRC)
	} else {
		id = create(t, client, key)
	}
	for i, d := range data {
		n := int32(i + 1)
		out, err := uploadPart(t, client, key, id, n, d, func(in *s3.UploadPartInput) {
			if c == withCRC {
				in.ChecksumCRC64NVME = aws.String(crc(d))
			}
		})
		require.NoError(t, err)
		p := types.CompletedPart{PartNumber: &n, ETag: out.ETag}
		if c == withCRC {
			p.ChecksumCRC64NVME = out.ChecksumCRC64NVME
		}
		parts = append(parts, p)
	}
	return id, parts
}

func complete(t *testing.T, client *s3.Client, key string, id *string, parts []types.CompletedPart, change ...func(*s3.CompleteMultipartUploadInput)) (*s3.CompleteMultipartUploadOutput, error) {
	t.Helper()
	in := &s3.CompleteMultipartUploadInput{
		Bucket: aws.String("b"), Key: aws.String(key), UploadId: id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	}
	for _, f := range change {
		f(in)
	}
	return client.CompleteMultipartUpload(t.Context(), in)
}

// etagOfParts is S3's multipart ETag, computed from the data.
func etagOfParts(data []string) string {
	var all []byte
	for _, d := range data {
		sum := md5.Sum([]byte(d))
		all = append(all, sum[:]...)
	}
	sum := md5.Sum(all)
	return `"` + hex.EncodeToString(sum[:]) + "-" + strconv.Itoa(len(data)) + `"`
}

func TestMultipart_TheObjectAppearsAtCompleteWithTokenETagAndCRC(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		data := []string{pattern(5<<20, 1), pattern(5<<20, 2), "tail"}
		all := strings.Join(data, "")
		id := create(t, client, "k", fullCRC, func(in *s3.CreateMultipartUploadInput) {
			in.Metadata, in.ContentType = map[string]string{"sluice-token": "t"}, aws.String("text/plain")
		})
		parts := make([]types.CompletedPart, 3)
		for _, n := range []int32{3, 1, 2} { // parts may come in any order
			out, err := uploadPart(t, client, "k", id, n, data[n-1], func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = aws.String(crc(data[n-1])) })
			require.NoError(t, err)
			parts[n-1] = types.CompletedPart{PartNumber: aws.Int32(n), ETag: out.ETag, ChecksumCRC64NVME: out.ChecksumCRC64NVME}
		}
		_, err := head(t, client, "k")
		requireCode(t, err, 404, "NotFound")

		up := srv.Uploads("b")
		require.Len(t, up, 1)
		require.Equal(t, "upload-1", up[0].Name)
		require.Equal(t, *id, up[0].ID)
		require.Equal(t, map[string]string{"sluice-token": "t"}, up[0].Metadata)
		require.Len(t, up[0].Parts, 3)
		require.Equal(t, crc("tail"), up[0].Parts[2].Checksum.Value)

		out, err := complete(t, client, "k", id, parts, func(in *s3.CompleteMultipartUploadInput) {
			in.ChecksumCRC64NVME, in.ChecksumType = aws.String(crc(all)), types.ChecksumTypeFullObject
			in.MpuObjectSize = aws.Int64(int64(len(all)))
		})
		require.NoError(t, err)
		require.Equal(t, etagOfParts(data), *out.ETag)
		require.Equal(t, crc(all), *out.ChecksumCRC64NVME)
		require.Empty(t, srv.Uploads("b"))

		h, err := head(t, client, "k")
		require.NoError(t, err)
		require.Equal(t, etagOfParts(data), *h.ETag)
		require.Equal(t, crc(all), *h.ChecksumCRC64NVME)
		require.Equal(t, types.ChecksumTypeFullObject, h.ChecksumType)
		require.EqualValues(t, len(all), *h.ContentLength)
		require.Equal(t, map[string]string{"sluice-token": "t"}, h.Metadata)
		got, body, err := get(t, client, "k", func(in *s3.GetObjectInput) { in.ChecksumMode = types.ChecksumModeEnabled })
		require.NoError(t, err)
		require.Equal(t, all, body)
		require.Equal(t, "text/plain", *got.ContentType)

		part, body, err := get(t, client, "k", func(in *s3.GetObjectInput) { in.PartNumber = aws.Int32(3) })
		require.NoError(t, err)
		require.Equal(t, "tail", body)
		require.EqualValues(t, 3, *part.PartsCount)
		_, _, err = get(t, client, "k", func(in *s3.GetObjectInput) { in.PartNumber = aws.Int32(4) })
		requireCode(t, err, 400, "InvalidPartNumber")
	})
}

func TestUploadPart_Rules(t *testing.T) {
	bubble(t, s3test.Options{MaxParts: 100}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id := create(t, client, "k", fullCRC)
		for _, n := range []int32{0, -1, 101} {
			_, err := uploadPart(t, client, "k", id, n, "x")
			requireCode(t, err, 400, "InvalidArgument")
		}
		res := do(t, srv, "PUT", "/b/k?partNumber=one&uploadId="+*id, "x", nil)
		require.Contains(t, bodyOf(t, res), "<Code>InvalidArgument</Code>")
		_, err := uploadPart(t, client, "k", id, 1, "x", func(in *s3.UploadPartInput) { in.ChecksumCRC64NVME = aws.String(crc("y")) })
		requireCode(t, err, 400, "BadDigest")
		_, err = uploadPart(t, client, "k", id, 1, "x", func(in *s3.UploadPartInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32 })
		requireCode(t, err, 400, "InvalidRequest")
		require.ErrorContains(t, err, "expected checksum Type: CRC64NVME, actual checksum Type: CRC32")
		_, err = uploadPart(t, client, "k", aws.String("nonsense"), 1, "x")
		requireCode(t, err, 404, "NoSuchUpload")
		require.Empty(t, srv.Uploads("b")[0].Parts)

		for _, data := range []string{"first", "second"} { // the same number again replaces the part
			_, err = uploadPart(t, client, "k", id, 100, data)
			require.NoError(t, err)
		}
		parts := srv.Uploads("b")[0].Parts
		require.Len(t, parts, 1)
		require.Equal(t, "second", string(parts[0].Data))
		require.Equal(t, crc("second"), parts[0].Checksum.Value, "a full-object upload computes what the client leaves out")
	})
}

func TestMultipart_Composite(t *testing.T) {
	bubble(t, s3test.Options{MinPartSize: 1}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id := create(t, client, "k", func(in *s3.CreateMultipartUploadInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256 })
		require.Equal(t, "COMPOSITE", srv.Uploads("b")[0].Type)
		var parts []types.CompletedPart
		var hashes []byte
		for i, d := range []string{"one", "two"} {
			out, err := uploadPart(t, client, "k", id, int32(i+1), d, func(in *s3.UploadPartInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256 })
			require.NoError(t, err)
			sum := sha256.Sum256([]byte(d))
			require.Equal(t, base64.StdEncoding.EncodeToString(sum[:]), *out.ChecksumSHA256)
			hashes = append(hashes, sum[:]...)
			parts = append(parts, types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: out.ETag})
		}
		_, err := uploadPart(t, client, "k", id, 3, "x")
		require.ErrorContains(t, err, "expected checksum Type: SHA256, actual checksum Type: null")
		_, err = complete(t, client, "k", id, parts)
		requireCode(t, err, 400, "InvalidRequest")
		require.ErrorContains(t, err, "It was missing for part 1")

		for i, d := range []string{"one", "two"} {
			sum := sha256.Sum256([]byte(d))
			parts[i].ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
		}
		out, err := complete(t, client, "k", id, parts)
		require.NoError(t, err)
		sum := sha256.Sum256(hashes)
		require.Equal(t, base64.StdEncoding.EncodeToString(sum[:])+"-2", *out.ChecksumSHA256)
		_, body, err := get(t, client, "k", func(in *s3.GetObjectInput) { in.ChecksumMode = types.ChecksumModeEnabled })
		require.NoError(t, err)
		require.Equal(t, "onetwo", body)
	})
}

func TestCreateMultipartUpload_ChecksumDeclarations(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		for _, c := range []struct {
			alg  types.ChecksumAlgorithm
			kind types.ChecksumType
			want types.ChecksumType // empty: refused
		}{
			{"CRC64NVME", "", "FULL_OBJECT"},
			{"CRC64NVME", "COMPOSITE", ""},
			{"CRC32", "", "COMPOSITE"},
			{"CRC32", "FULL_OBJECT", "FULL_OBJECT"},
			{"CRC32C", "FULL_OBJECT", "FULL_OBJECT"},
			{"SHA256", "FULL_OBJECT", ""},
			{"SHA1", "COMPOSITE", "COMPOSITE"},
			{"MD4", "", ""},
			{"", "FULL_OBJECT", ""},
			{"CRC32", "PARTIAL", ""},
		} {
			out, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
				Bucket: aws.String("b"), Key: aws.String("k"), ChecksumAlgorithm: c.alg, ChecksumType: c.kind,
			})
			if c.want == "" {
				assert.Equal(t, "InvalidRequest", codeOf(err), "%+v", c)
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, out.ChecksumType, "%+v", c)
			assert.Equal(t, c.alg, out.ChecksumAlgorithm)
		}
		_, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String("missing"), Key: aws.String("k")})
		requireCode(t, err, 404, "NoSuchBucket")
		require.Len(t, srv.Uploads("b"), 5)
	})
}

func TestMultipart_WithoutADeclarationS3ComputesCRC64NVME(t *testing.T) {
	bubble(t, s3test.Options{MinPartSize: 1}, func(t *testing.T, _ *s3test.Server, client *s3.Client) {
		id := create(t, client, "k")
		// The SDK's default: CRC32 for the part, nothing at Create.
		out, err := uploadPart(t, client, "k", id, 1, "abc", func(in *s3.UploadPartInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32 })
		require.NoError(t, err)
		parts := []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}}
		_, err = complete(t, client, "k", id, parts)
		requireCode(t, err, 400, "InvalidPart")
		parts[0].ChecksumCRC32 = nil
		done, err := complete(t, client, "k", id, parts)
		require.NoError(t, err)
		require.Equal(t, crc("abc"), *done.ChecksumCRC64NVME)
	})
}

func TestAbort_EndsTheUpload(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, parts := upload(t, client, "k", []string{"x"}, noCRC)
		abort := func() error {
			_, err := client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{Bucket: aws.String("b"), Key: aws.String("k"), UploadId: id})
			return err
		}
		require.NoError(t, abort())
		requireCode(t, abort(), 404, "NoSuchUpload")
		_, err := complete(t, client, "k", id, parts)
		requireCode(t, err, 404, "NoSuchUpload")
		_, err = client.ListParts(t.Context(), &s3.ListPartsInput{Bucket: aws.String("b"), Key: aws.String("k"), UploadId: id})
		requireCode(t, err, 404, "NoSuchUpload")
		require.Empty(t, srv.Uploads("b"))
	})
}

func TestDropUpload_ExpiresAnUpload(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, _ := upload(t, client, "k", []string{"x"}, noCRC)
		upload(t, client, "k", []string{"x"}, noCRC)
		require.True(t, srv.DropUpload(*id))
		require.False(t, srv.DropUpload(*id))
		require.True(t, srv.DropUpload("upload-2"))
		_, err := uploadPart(t, client, "k", id, 2, "y")
		requireCode(t, err, 404, "NoSuchUpload")
	})
}

// completed lists parts numbered from 1.
func completed(etags ...*string) (parts []types.CompletedPart) {
	for i, e := range etags {
		parts = append(parts, types.CompletedPart{PartNumber: aws.Int32(int32(i + 1)), ETag: e})
	}
	return parts
}
