package s3test_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestChecksums_TheSDKAndTheServerAgreeOnEveryAlgorithm(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		data := pattern(100_000, 7)
		for _, alg := range []types.ChecksumAlgorithm{"CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"} {
			out, err := put(t, client, string(alg), data, func(in *s3.PutObjectInput) { in.ChecksumAlgorithm = alg })
			require.NoError(t, err, alg)
			require.Equal(t, types.ChecksumTypeFullObject, out.ChecksumType)
			o, _ := srv.Object("b", string(alg))
			assert.Equal(t, string(alg), o.Checksum.Algorithm)

			// Reading with the checksum mode on, the SDK computes the checksum again and compares.
			got, body, err := get(t, client, string(alg), func(in *s3.GetObjectInput) { in.ChecksumMode = types.ChecksumModeEnabled })
			require.NoError(t, err, alg)
			assert.Equal(t, data, body)
			sums := []*string{got.ChecksumCRC32, got.ChecksumCRC32C, got.ChecksumCRC64NVME, got.ChecksumSHA1, got.ChecksumSHA256}
			said := 0
			for _, v := range sums {
				if v != nil {
					said++
					assert.Equal(t, o.Checksum.Value, *v)
				}
			}
			assert.Equal(t, 1, said, alg)
		}
	})
}

func TestCRC64NVME_IsTheCatalogueValueAndThatOfAnotherImplementation(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		// CRC-64/NVME of "123456789" is AE8B14860A799888 in the catalogue of parametrised CRC algorithms.
		srv.PutObject("b", "check", []byte("123456789"), nil)
		o, _ := srv.Object("b", "check")
		require.Equal(t, "rosUhgp5mIg=", o.Checksum.Value)
		for _, n := range []int{0, 1, 7, 8, 63, 64, 65, 4095, 100_001} {
			data := pattern(n, 1)
			out, err := put(t, client, fmt.Sprint(n), data)
			require.NoError(t, err)
			assert.Equal(t, crc(data), *out.ChecksumCRC64NVME, "S3 computes it when the client sends nothing, size %d", n)
			h, err := head(t, client, fmt.Sprint(n))
			require.NoError(t, err)
			assert.Equal(t, crc(data), *h.ChecksumCRC64NVME)
		}
	})
}

func TestChecksums_AWrongOneIsRefused(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		_, err := put(t, client, "k", "right", func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = aws.String(crc("wrong")) })
		requireCode(t, err, 400, "BadDigest")
		_, err = put(t, client, "k", "right", func(in *s3.PutObjectInput) { in.ChecksumCRC32 = aws.String("AAAAAA==") })
		requireCode(t, err, 400, "BadDigest")
		_, err = put(t, client, "k", "right", func(in *s3.PutObjectInput) { in.ChecksumCRC32 = aws.String("not base64") })
		requireCode(t, err, 400, "InvalidRequest")
		res := do(t, srv, "PUT", "/b/k", "right", map[string]string{"x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-crc64nvme": crc("right")})
		require.Contains(t, bodyOf(t, res), "Multiple checksum Types")
		res = do(t, srv, "PUT", "/b/k", "right", map[string]string{"x-amz-sdk-checksum-algorithm": "CRC32"})
		require.Contains(t, bodyOf(t, res), "no corresponding")
		require.Empty(t, srv.Keys("b"))

		_, err = put(t, client, "k", "right", func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = aws.String(crc("right")) })
		require.NoError(t, err)
	})
}

func TestQuirk_IgnoreChecksumsAcceptsWrongOnesAndReturnsNone(t *testing.T) {
	bubble(t, s3test.Options{Quirks: s3test.Quirks{IgnoreChecksums: true}}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		out, err := put(t, client, "k", "right", func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = aws.String(crc("wrong")) })
		require.NoError(t, err)
		require.Nil(t, out.ChecksumCRC64NVME)
		h, err := head(t, client, "k")
		require.NoError(t, err)
		require.Nil(t, h.ChecksumCRC64NVME)
		require.Empty(t, h.ChecksumType)

		id, parts := upload(t, client, "m", []string{"one"}, withCRC)
		_, err = client.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
			Bucket: aws.String("b"), Key: aws.String("m"), UploadId: id, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
			ChecksumCRC64NVME: aws.String(crc("wrong")), ChecksumType: types.ChecksumTypeFullObject, MpuObjectSize: aws.Int64(99),
		})
		require.NoError(t, err)
		o, _ := srv.Object("b", "m")
		require.Equal(t, s3test.Checksum{}, o.Checksum)
	})
}

// Over TLS the SDK sends streams aws-chunked, with the checksum behind the data.
func TestTrailingChecksums_FromTheSDKOverTLS(t *testing.T) {
	srv := s3test.New(s3test.Options{Buckets: []string{"b"}, AccessKey: accessKey, SecretKey: secretKey})
	defer srv.Close()
	tls := httptest.NewTLSServer(srv)
	defer tls.Close()
	for _, alg := range []types.ChecksumAlgorithm{"CRC32", "CRC64NVME", "SHA256"} {
		client := newClient(srv, func(o *s3.Options) {
			o.BaseEndpoint, o.HTTPClient = aws.String(tls.URL), tls.Client()
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		})
		data := pattern(200_000, 3)
		out, err := client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String("b"), Key: aws.String("k"), ContentLength: aws.Int64(int64(len(data))), ChecksumAlgorithm: alg,
			Body: io.MultiReader(strings.NewReader(data)), ContentEncoding: aws.String("gzip"),
		})
		require.NoError(t, err, alg)
		require.Equal(t, types.ChecksumTypeFullObject, out.ChecksumType)
		o, _ := srv.Object("b", "k")
		require.Equal(t, data, string(o.Data))
		require.Equal(t, string(alg), o.Checksum.Algorithm)
		h, err := head(t, client, "k")
		require.NoError(t, err)
		require.Equal(t, "gzip", *h.ContentEncoding, "aws-chunked belongs to the transfer")
	}
	require.Contains(t, srv.Trace(), "PutObject b/k size=200000 crc64nvme="+crc(pattern(200_000, 3))+" -> 200\n")
}

func TestAWSChunked_BadBodiesAreRefused(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, _ *s3.Client) {
		send := func(body string, change map[string]string) string {
			h := map[string]string{
				"Content-Encoding": "aws-chunked", "x-amz-decoded-content-length": "5",
				"x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "x-amz-trailer": "x-amz-checksum-crc64nvme",
			}
			for k, v := range change {
				h[k] = v
			}
			res := do(t, srv, "PUT", "/b/k", body, h)
			return res.Status + " " + bodyOf(t, res)
		}
		trailer := "x-amz-checksum-crc64nvme:" + crc("hello") + "\r\n\r\n"
		require.Contains(t, send("5\r\nhello\r\n0\r\n"+trailer, nil), "200")
		require.Contains(t, send("2;chunk-signature=ab\r\nhe\r\n3\r\nllo\r\n0\r\n"+trailer, nil), "200")
		require.True(t, srv.DeleteObject("b", "k"))

		for body, code := range map[string]string{
			"5\r\nhello\r\n":                       "IncompleteBody",
			"5\r\nhel":                             "IncompleteBody",
			"zz\r\nhello\r\n0\r\n\r\n":             "IncompleteBody",
			"-5\r\nhello\r\n0\r\n\r\n":             "IncompleteBody",
			"3fffffffffffffff\r\nhello\r\n":        "IncompleteBody",
			"6\r\nhello\r\n0\r\n\r\n":              "IncompleteBody",
			"5\r\nhello\r\n0\r\nno-colon\r\n\r\n":  "IncompleteBody",
			"4\r\nhell\r\n0\r\n" + trailer:         "IncompleteBody",
			"5\r\nhello\r\n0\r\n\r\n":              "MalformedTrailerError",
			"5\r\nworld\r\n0\r\n" + trailer:        "BadDigest",
			"5\r\nhello\r\n0\r\nx-amz-checksum-cr": "IncompleteBody",
		} {
			assert.Contains(t, send(body, nil), "<Code>"+code+"</Code>", "%q", body)
		}
		assert.Contains(t, send("5\r\nhello\r\n0\r\n"+trailer, map[string]string{"x-amz-decoded-content-length": ""}), "MissingContentLength")
		require.Empty(t, srv.Keys("b"))
	})
}

func TestPut_WithoutALengthIsRefused(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, _ *s3.Client) {
		client := srv.Client()
		req := httptest.NewRequestWithContext(t.Context(), "PUT", srv.URL()+"/b/k", io.MultiReader(bytes.NewReader([]byte("x"))))
		req.RequestURI = ""
		res, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 411, res.StatusCode)
	})
}
