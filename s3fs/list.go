package s3fs

import (
	"context"
	"errors"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// errPaging ends a listing that would never end by itself.
var errPaging = errors.New("the store says there is more but does not say where to go on")

// List yields every object whose key begins with prefix.Key, in the order of
// the store: S3 and most others sort by the bytes of the key. Pages are fetched
// as the loop advances, so breaking out early costs nothing, and an object made
// or deleted meanwhile may or may not be seen. An error is yielded once, with a
// zero Info, and ends the sequence; every range over it starts from the
// beginning. An empty result is no error, a missing bucket is ErrNoBucket.
func (f *FS) List(ctx context.Context, prefix Path) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		token := ""
		for {
			page, err := f.listPage(ctx, prefix, "", token)
			if err != nil {
				yield(Info{}, err)
				return
			}
			for _, info := range infos(prefix.Bucket, page) {
				if !yield(info, nil) {
					return
				}
			}
			if token = aws.ToString(page.NextContinuationToken); token == "" {
				return
			}
		}
	}
}

// listPage fetches one page. A page that promises more names a token that
// differs from the last one, or is an error.
func (f *FS) listPage(ctx context.Context, prefix Path, delimiter, token string) (*s3.ListObjectsV2Output, error) {
	c := call{op: "list", path: prefix, permission: "s3:ListBucket"}
	in := &s3.ListObjectsV2Input{
		Bucket: aws.String(prefix.Bucket), Prefix: optional(prefix.Key), Delimiter: optional(delimiter), ContinuationToken: optional(token),
	}
	out, err := invoke(ctx, f, c, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return f.client.s3.ListObjectsV2(ctx, in)
	})
	if err != nil {
		return nil, err
	}
	if !aws.ToBool(out.IsTruncated) {
		out.NextContinuationToken = nil
		return out, nil
	}
	if next := aws.ToString(out.NextContinuationToken); next == "" || next == token {
		return nil, &OpError{Op: c.op, Path: prefix, Class: permanent, Err: errPaging}
	}
	return out, nil
}

// optional leaves an empty parameter out of the request.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
