package s3test_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// listAll pages through a listing and returns keys and common prefixes, each page as one slice.
func listAll(t *testing.T, client *s3.Client, change func(*s3.ListObjectsV2Input)) (pages [][]string) {
	t.Helper()
	in := &s3.ListObjectsV2Input{Bucket: aws.String("b")}
	change(in)
	p := s3.NewListObjectsV2Paginator(client, in)
	for p.HasMorePages() {
		out, err := p.NextPage(t.Context())
		require.NoError(t, err)
		var page []string
		for _, o := range out.Contents {
			page = append(page, *o.Key)
		}
		for _, c := range out.CommonPrefixes {
			page = append(page, *c.Prefix)
		}
		require.EqualValues(t, len(page), *out.KeyCount)
		pages = append(pages, page)
	}
	return pages
}

func TestListObjectsV2_SelectsSortsAndPages(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		for _, k := range []string{"b/2", "a", "b/1", "c/x/1", "c/x/2", "c/y", "d", "B", "é"} {
			srv.PutObject("b", k, []byte(k), nil)
		}
		for name, c := range map[string]struct {
			change func(*s3.ListObjectsV2Input)
			want   [][]string
		}{
			"all, in byte order": {
				func(*s3.ListObjectsV2Input) {},
				[][]string{{"B", "a", "b/1", "b/2", "c/x/1", "c/x/2", "c/y", "d", "é"}},
			},
			"prefix": {func(in *s3.ListObjectsV2Input) { in.Prefix = aws.String("b/") }, [][]string{{"b/1", "b/2"}}},
			"delimiter": {
				func(in *s3.ListObjectsV2Input) { in.Delimiter = aws.String("/") },
				[][]string{{"B", "a", "d", "é", "b/", "c/"}},
			},
			"delimiter below a prefix": {
				func(in *s3.ListObjectsV2Input) { in.Prefix, in.Delimiter = aws.String("c/"), aws.String("/") },
				[][]string{{"c/y", "c/x/"}},
			},
			"start after": {func(in *s3.ListObjectsV2Input) { in.StartAfter = aws.String("c/x/2") }, [][]string{{"c/y", "d", "é"}}},
			"start between keys": {
				func(in *s3.ListObjectsV2Input) { in.StartAfter, in.Prefix = aws.String("b/10"), aws.String("b/") },
				[][]string{{"b/2"}},
			},
			"start before the prefix": {
				func(in *s3.ListObjectsV2Input) { in.StartAfter, in.Prefix = aws.String("a"), aws.String("b/") },
				[][]string{{"b/1", "b/2"}},
			},
			"nothing there": {func(in *s3.ListObjectsV2Input) { in.Prefix = aws.String("zz") }, [][]string{nil}},
			"pages": {
				func(in *s3.ListObjectsV2Input) { in.MaxKeys = aws.Int32(4) },
				[][]string{{"B", "a", "b/1", "b/2"}, {"c/x/1", "c/x/2", "c/y", "d"}, {"é"}},
			},
			"pages that end exactly": {
				func(in *s3.ListObjectsV2Input) { in.MaxKeys = aws.Int32(3) },
				[][]string{{"B", "a", "b/1"}, {"b/2", "c/x/1", "c/x/2"}, {"c/y", "d", "é"}},
			},
			"pages with groups": {
				func(in *s3.ListObjectsV2Input) { in.MaxKeys, in.Delimiter = aws.Int32(2), aws.String("/") },
				[][]string{{"B", "a"}, {"b/", "c/"}, {"d", "é"}},
			},
			"one by one with groups": {
				func(in *s3.ListObjectsV2Input) {
					in.MaxKeys, in.Delimiter, in.Prefix = aws.Int32(1), aws.String("/"), aws.String("c/")
				},
				[][]string{{"c/x/"}, {"c/y"}},
			},
		} {
			assert.Equal(t, c.want, listAll(t, client, c.change), name)
		}
		out, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("b"), MaxKeys: aws.Int32(0)})
		require.NoError(t, err)
		require.Empty(t, out.Contents)
		require.False(t, *out.IsTruncated)
	})
}

func TestListObjectsV2_TellsWhatS3Tells(t *testing.T) {
	bubble(t, s3test.Options{PageSize: 2}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		put1, err := put(t, client, "a b/+&é\x01", "12345")
		require.NoError(t, err)
		in := &s3.ListObjectsV2Input{Bucket: aws.String("b"), EncodingType: types.EncodingTypeUrl}
		out, err := client.ListObjectsV2(t.Context(), in)
		require.NoError(t, err)
		o := out.Contents[0]
		key, err := url.QueryUnescape(*o.Key)
		require.NoError(t, err)
		require.Equal(t, "a b/+&é\x01", key)
		require.Equal(t, "a+b/%2B%26%C3%A9%01", *o.Key)
		require.EqualValues(t, 5, *o.Size)
		require.Equal(t, *put1.ETag, *o.ETag)
		require.Equal(t, time.Now().UTC().Truncate(time.Second), o.LastModified.UTC())
		require.Equal(t, []types.ChecksumAlgorithm{"CRC64NVME"}, o.ChecksumAlgorithm)

		srv.PutObject("b", "x", nil, nil)
		srv.PutObject("b", "y", nil, nil)
		require.Len(t, listAll(t, client, func(in *s3.ListObjectsV2Input) { in.MaxKeys = aws.Int32(1000) }), 2, "PageSize is the server's")

		for _, change := range []func(*s3.ListObjectsV2Input){
			func(in *s3.ListObjectsV2Input) { in.ContinuationToken = aws.String("nonsense") },
			func(in *s3.ListObjectsV2Input) { in.MaxKeys = aws.Int32(-1) },
			func(in *s3.ListObjectsV2Input) { in.EncodingType = "html" },
		} {
			in := &s3.ListObjectsV2Input{Bucket: aws.String("b")}
			change(in)
			_, err := client.ListObjectsV2(t.Context(), in)
			requireCode(t, err, 400, "InvalidArgument")
		}
		_, err = client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("missing")})
		requireCode(t, err, 404, "NoSuchBucket")
	})
}

func TestListObjectsV2_ThousandAtATime(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		for i := range 2500 {
			srv.PutObject("b", fmt.Sprintf("k%04d", i), nil, nil)
		}
		pages := listAll(t, client, func(*s3.ListObjectsV2Input) {})
		require.Len(t, pages, 3)
		n := 0
		for _, page := range pages {
			for _, key := range page {
				require.Equal(t, fmt.Sprintf("k%04d", n), key)
				n++
			}
		}
		require.Equal(t, 2500, n)
	})
}

func TestListParts_PagesInOrder(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		id, _ := upload(t, client, "k", []string{"a", "bb", "ccc", "dddd", "eeeee"}, withCRC)
		p := s3.NewListPartsPaginator(client, &s3.ListPartsInput{Bucket: aws.String("b"), Key: aws.String("k"), UploadId: id, MaxParts: aws.Int32(2)})
		n := int32(0)
		for p.HasMorePages() {
			out, err := p.NextPage(t.Context())
			require.NoError(t, err)
			require.Equal(t, types.ChecksumTypeFullObject, out.ChecksumType)
			for _, part := range out.Parts {
				n++
				data := string(srv.Uploads("b")[0].Parts[n-1].Data)
				require.Equal(t, n, *part.PartNumber)
				require.EqualValues(t, n, *part.Size)
				require.Equal(t, crc(data), *part.ChecksumCRC64NVME)
			}
		}
		require.EqualValues(t, 5, n)
		require.Equal(t, 3, srv.Counts().Total(s3test.ListParts))
	})
}

func TestListMultipartUploads_PagesByKeyThenAge(t *testing.T) {
	bubble(t, s3test.Options{}, func(t *testing.T, srv *s3test.Server, client *s3.Client) {
		var want []string
		for _, key := range []string{"p/a", "p/b", "p/b", "p/b", "q"} {
			create(t, client, key)
		}
		for _, u := range srv.Uploads("b") {
			want = append(want, u.Key+" "+u.ID)
		}
		list := func(change func(*s3.ListMultipartUploadsInput)) (got []string, prefixes []string) {
			in := &s3.ListMultipartUploadsInput{Bucket: aws.String("b")}
			change(in)
			for pages := 0; ; pages++ {
				require.Less(t, pages, 10)
				out, err := client.ListMultipartUploads(t.Context(), in)
				require.NoError(t, err)
				for _, u := range out.Uploads {
					got = append(got, *u.Key+" "+*u.UploadId)
				}
				for _, c := range out.CommonPrefixes {
					prefixes = append(prefixes, *c.Prefix)
				}
				if !*out.IsTruncated {
					return got, prefixes
				}
				in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
			}
		}
		for _, size := range []int32{1, 2, 3, 5, 1000} {
			got, _ := list(func(in *s3.ListMultipartUploadsInput) { in.MaxUploads = aws.Int32(size) })
			require.Equal(t, want, got, "page size %d", size)
		}
		got, _ := list(func(in *s3.ListMultipartUploadsInput) { in.Prefix = aws.String("p/b") })
		require.Equal(t, want[1:4], got)
		got, _ = list(func(in *s3.ListMultipartUploadsInput) { in.KeyMarker = aws.String("p/b") })
		require.Equal(t, want[4:], got, "a key without an id stands for all its uploads")
		got, prefixes := list(func(in *s3.ListMultipartUploadsInput) { in.Delimiter, in.MaxUploads = aws.String("/"), aws.Int32(1) })
		require.Equal(t, want[4:], got)
		require.Equal(t, []string{"p/"}, prefixes)
	})
}
