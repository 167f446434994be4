package storemodel_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func (s *script) put(name, want, key, body string, mods ...func(*s3.PutObjectInput)) {
	in := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: strings.NewReader(body)}
	for _, m := range mods {
		m(in)
	}
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.PutObject(ctx, in)
		if err != nil {
			return "", err
		}
		return facts(nil, out.ETag, out.ChecksumCRC64NVME, out.ChecksumType, nil), nil
	})
}

func (s *script) head(name, want, in, key string) {
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.HeadObject(ctx, &s3.HeadObjectInput{
			Bucket: aws.String(in), Key: aws.String(key), ChecksumMode: types.ChecksumModeEnabled,
		})
		if err != nil {
			return "", err
		}
		return facts(out.ContentLength, out.ETag, out.ChecksumCRC64NVME, out.ChecksumType, out.Metadata), nil
	})
}

// get reads an object; a range goes without checksum mode, as the product's reader does it.
func (s *script) get(name, want, in, key, extent string) {
	req := &s3.GetObjectInput{Bucket: aws.String(in), Key: aws.String(key), ChecksumMode: types.ChecksumModeEnabled}
	if extent != "" {
		req.Range, req.ChecksumMode = aws.String(extent), ""
	}
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.GetObject(ctx, req)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(out.Body)
		if err = errors.Join(err, out.Body.Close()); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s range=%q body=%s", facts(out.ContentLength, out.ETag, out.ChecksumCRC64NVME, out.ChecksumType, out.Metadata),
			aws.ToString(out.ContentRange), *crcOf(body)), nil
	})
}

func (s *script) remove(name, want, in, key string) {
	s.do(name, want, func(ctx context.Context) (string, error) {
		_, err := s.c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(in), Key: aws.String(key)})
		return "", err
	})
}

// create starts an upload as the sink does and returns its id.
func (s *script) create(name, want, in, key string) (id string) {
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: aws.String(in), Key: aws.String(key), Metadata: map[string]string{tokenKey: "token-" + key},
			ChecksumAlgorithm: types.ChecksumAlgorithmCrc64nvme, ChecksumType: types.ChecksumTypeFullObject,
		})
		if err != nil {
			return "", err
		}
		id = aws.ToString(out.UploadId)
		return fmt.Sprintf("%s %s %s", aws.ToString(out.Key), out.ChecksumAlgorithm, out.ChecksumType), nil
	})
	return id
}

// part uploads one part with the CRC of sum, which is the body's own unless it is to be wrong.
func (s *script) part(name, want, key, id string, number int32, body, sum []byte) types.CompletedPart {
	done := types.CompletedPart{PartNumber: aws.Int32(number), ChecksumCRC64NVME: crcOf(body)}
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: aws.String(bucket), Key: aws.String(key), UploadId: aws.String(id), PartNumber: aws.Int32(number),
			Body: bytes.NewReader(body), ChecksumCRC64NVME: crcOf(sum),
		})
		if err != nil {
			return "", err
		}
		done.ETag = out.ETag
		return facts(nil, out.ETag, out.ChecksumCRC64NVME, "", nil), nil
	})
	return done
}

func (s *script) parts(name, want, key, id string, limit int32, after string) {
	in := &s3.ListPartsInput{Bucket: aws.String(bucket), Key: aws.String(key), UploadId: aws.String(id), MaxParts: aws.Int32(limit)}
	if after != "" {
		in.PartNumberMarker = aws.String(after)
	}
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.ListParts(ctx, in)
		if err != nil {
			return "", err
		}
		text := fmt.Sprintf("more=%t %s %s", aws.ToBool(out.IsTruncated), out.ChecksumAlgorithm, out.ChecksumType)
		if aws.ToBool(out.IsTruncated) {
			text += " next=" + aws.ToString(out.NextPartNumberMarker)
		}
		for _, p := range out.Parts {
			text += fmt.Sprintf(" [%d %s]", *p.PartNumber, facts(p.Size, p.ETag, p.ChecksumCRC64NVME, "", nil))
		}
		return text, nil
	})
}

// complete names the parts, and whole as the object's bytes. The options change the request.
func (s *script) complete(name, want, key, id string, whole []byte, parts []types.CompletedPart, mods ...func(*s3.CompleteMultipartUploadInput)) {
	in := &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(bucket), Key: aws.String(key), UploadId: aws.String(id), MpuObjectSize: aws.Int64(int64(len(whole))),
		MultipartUpload:   &types.CompletedMultipartUpload{Parts: parts},
		ChecksumCRC64NVME: crcOf(whole), ChecksumType: types.ChecksumTypeFullObject,
	}
	for _, m := range mods {
		m(in)
	}
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.CompleteMultipartUpload(ctx, in)
		if err != nil {
			return "", err
		}
		return aws.ToString(out.Key) + " " + facts(nil, out.ETag, out.ChecksumCRC64NVME, out.ChecksumType, nil), nil
	})
}

func (s *script) abort(name, want, key, id string) {
	s.do(name, want, func(ctx context.Context) (string, error) {
		_, err := s.c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String(key), UploadId: aws.String(id)})
		return "", err
	})
}

// listed is the part list of a Complete.
func listed(p ...types.CompletedPart) []types.CompletedPart { return p }

// block is a part of the least size S3 takes for all but the last.
func block(c byte) []byte { return bytes.Repeat([]byte{c}, minPart) }

// objectPages follows the pages of a listing, at most ten of them.
func (s *script) objectPages(name, prefix, delimiter, after string, limit int32) {
	in := &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix), MaxKeys: aws.Int32(limit)}
	if delimiter != "" {
		in.Delimiter = aws.String(delimiter)
	}
	if after != "" {
		in.StartAfter = aws.String(after)
	}
	for n := range 10 {
		if in.ContinuationToken = s.page(fmt.Sprint(name, ", page ", n+1), "200", in); in.ContinuationToken == nil {
			return
		}
	}
	s.t.Fatal(name + ": no end of pages")
}

func (s *script) page(name, want string, in *s3.ListObjectsV2Input) (next *string) {
	s.do(name, want, func(ctx context.Context) (string, error) {
		out, err := s.c.ListObjectsV2(ctx, in)
		if err != nil {
			return "", err
		}
		text := fmt.Sprintf("more=%t count=%d", aws.ToBool(out.IsTruncated), aws.ToInt32(out.KeyCount))
		for _, o := range out.Contents {
			text += fmt.Sprintf(" [%s %s]", *o.Key, facts(o.Size, o.ETag, nil, "", nil))
		}
		for _, p := range out.CommonPrefixes {
			text += fmt.Sprintf(" [%s]", *p.Prefix)
		}
		next = out.NextContinuationToken
		return text, nil
	})
	return next
}

// uploadPages follows the pages of a listing of uploads, at most ten of them. It goes on behind the last upload of a page
// or, without byID, behind its key, which is the same as long as a key has one upload.
func (s *script) uploadPages(name, prefix string, limit int32, byID bool) {
	in := &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket), Prefix: aws.String(prefix), MaxUploads: aws.Int32(limit)}
	for n := range 10 {
		more := false
		s.do(fmt.Sprint(name, ", page ", n+1), "200", func(ctx context.Context) (string, error) {
			out, err := s.c.ListMultipartUploads(ctx, in)
			if err != nil {
				return "", err
			}
			more = aws.ToBool(out.IsTruncated)
			if in.KeyMarker = out.NextKeyMarker; byID {
				in.UploadIdMarker = out.NextUploadIdMarker
			}
			text := fmt.Sprintf("more=%t", more)
			for _, u := range out.Uploads {
				text += fmt.Sprintf(" [%s %s]", *u.Key, cmp.Or(string(u.ChecksumType), "-"))
			}
			return text, nil
		})
		if !more {
			return
		}
	}
	s.t.Fatal(name + ": no end of pages")
}
