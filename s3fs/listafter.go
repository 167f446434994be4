package s3fs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/sluice-go/sluice/retrymode"
)

// ListAfter returns one page of the objects whose keys begin with prefix.Key and
// follow after in the order of their bytes: at most limit of them, and no more
// than the store puts into a page, which is 1,000 commonly. more says that there
// are others behind the last one. It is one call of the priority lane, for
// looking at many known keys at once; List is for everything.
//
// A store that does not know where to begin, or sorts differently, returns
// other objects than asked for: match keys, not positions.
func (f *FS) ListAfter(ctx context.Context, prefix Path, after string, limit int) (page []Info, more bool, err error) {
	in := &s3.ListObjectsV2Input{
		Bucket: aws.String(prefix.Bucket), Prefix: optional(prefix.Key), StartAfter: optional(after), MaxKeys: aws.Int32(int32(min(max(limit, 1), maxPage))),
	}
	c := call{op: "list", path: prefix, permission: "s3:ListBucket"}
	out, err := invoke(retrymode.WithPriority(ctx), f, c, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return f.client.s3.ListObjectsV2(ctx, in)
	})
	if err != nil {
		return nil, false, err
	}
	return infos(prefix.Bucket, out), aws.ToBool(out.IsTruncated), nil
}

// maxPage is the most objects that a store puts into a page.
const maxPage = 1000

// infos returns what a page of a listing shows.
func infos(bucket string, page *s3.ListObjectsV2Output) []Info {
	list := make([]Info, len(page.Contents))
	for i, o := range page.Contents {
		list[i] = Info{
			Path: Path{Bucket: bucket, Key: aws.ToString(o.Key)}, Size: aws.ToInt64(o.Size),
			ETag: unquote(o.ETag), LastModified: aws.ToTime(o.LastModified),
		}
	}
	return list
}
