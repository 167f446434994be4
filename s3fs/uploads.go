package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/sluice-go/sluice/multipart"
)

// Upload is a multipart upload that has been neither completed nor aborted.
type Upload struct {
	Path      Path
	UploadID  string
	Initiated time.Time // when it was created, by the clock of the store
}

// ListMultipartUploads yields every multipart upload in progress whose key begins
// with prefix.Key, in the order of the store: by key, and for one key by age, on S3
// and most others. Pages are fetched as the loop advances, so breaking out early costs
// nothing, and an upload created or ended meanwhile may or may not be seen: one
// that existed before the first page was asked for, and still does when the last
// one has come, is seen. An error is yielded once, with a zero Upload, and ends the
// sequence; every range over it starts from the beginning. An empty result is no
// error, a missing bucket is ErrNoBucket. Uploads outside of the prefix, which
// some stores list too, are left out. On a store that refuses its own upload id marker
// the listing goes on behind the last key of a page: further uploads of that key may be
// left out.
func (f *FS) ListMultipartUploads(ctx context.Context, prefix Path) iter.Seq2[Upload, error] {
	return func(yield func(Upload, error) bool) {
		var after uploadMarker
		for {
			page, next, err := f.uploadsPage(ctx, prefix, after)
			if code, _, _ := answerOf(err); code == "InvalidArgument" && after.id != "" {
				// versitygw 1.8.0 refuses the upload id marker that it has given itself.
				page, next, err = f.uploadsPage(ctx, prefix, uploadMarker{key: after.key})
			}
			if err != nil {
				yield(Upload{}, err)
				return
			}
			for _, u := range page {
				if !yield(u, nil) {
					return
				}
			}
			if next == (uploadMarker{}) {
				return
			}
			after = next
		}
	}
}

// uploadMarker is where a listing of uploads goes on.
type uploadMarker struct{ key, id string }

// uploadsPage fetches one page. next is zero behind the last page; otherwise it differs from after.
func (f *FS) uploadsPage(ctx context.Context, prefix Path, after uploadMarker) (page []Upload, next uploadMarker, err error) {
	c := call{op: "list uploads", path: prefix, permission: "s3:ListBucketMultipartUploads"}
	in := &s3.ListMultipartUploadsInput{
		Bucket: aws.String(prefix.Bucket), Prefix: optional(prefix.Key),
		KeyMarker: optional(after.key), UploadIdMarker: optional(after.id),
	}
	out, err := invoke(ctx, f, c, func(ctx context.Context) (*s3.ListMultipartUploadsOutput, error) {
		return f.client.s3.ListMultipartUploads(ctx, in)
	})
	if err != nil {
		return nil, uploadMarker{}, err
	}
	for _, u := range out.Uploads {
		found := Upload{
			Path:     Path{Bucket: prefix.Bucket, Key: aws.ToString(u.Key)},
			UploadID: aws.ToString(u.UploadId), Initiated: aws.ToTime(u.Initiated),
		}
		next = uploadMarker{key: found.Path.Key, id: found.UploadID}
		if strings.HasPrefix(found.Path.Key, prefix.Key) {
			page = append(page, found)
		}
	}
	if !aws.ToBool(out.IsTruncated) {
		return page, uploadMarker{}, nil
	}
	// Where to go on is what the store says or, since not all say it, the last upload of the page.
	if key := aws.ToString(out.NextKeyMarker); key != "" {
		next = uploadMarker{key: key, id: aws.ToString(out.NextUploadIdMarker)}
	}
	if next == (uploadMarker{}) || next == after {
		return nil, uploadMarker{}, &OpError{Op: c.op, Path: prefix, Class: permanent, Err: errPaging}
	}
	return page, next, nil
}

// AbortUpload drops a multipart upload and the parts it has. That there is no such
// upload (any more) is no error, since the answer to an earlier attempt can have
// been lost; it may have been completed, too. Parts that are on their way while
// the upload is aborted may stay behind on some stores: abort what nobody writes to.
//
// Nothing else in this package aborts: what a checkpoint names must survive, and
// only the caller can know what those name.
func (f *FS) AbortUpload(ctx context.Context, p Path, uploadID string) error {
	c := call{op: "abort", path: p, uploadID: uploadID, write: true, permission: "s3:AbortMultipartUpload"}
	if uploadID == "" {
		// On the wire this would look like the deletion of the object.
		return &OpError{Op: c.op, Path: p, Class: permanent, Err: fmt.Errorf("%w: the upload id is empty", fs.ErrInvalid)}
	}
	_, err := invokeKey(ctx, f, c, func(ctx context.Context) (*s3.AbortMultipartUploadOutput, error) {
		return f.client.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: aws.String(p.Bucket), Key: aws.String(p.Key), UploadId: aws.String(uploadID),
		})
	})
	if errors.Is(err, multipart.ErrNoSuchUpload) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
