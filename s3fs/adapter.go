package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/sluice-go/sluice/multipart"
	"github.com/sluice-go/sluice/retrymode"
)

// TokenMetadata is the user metadata that carries the owner token of an upload,
// set when the upload is created and shown by every HEAD of the finished object.
const TokenMetadata = "sluice-token"

// API returns the file system as the store of recoverable uploads. Its errors
// are *multipart.Error; the *OpError with the class and the SDK's own error is
// inside. The bodies it is given must be seekable memory: every retry sends them
// again from the start.
//
// Complete, Abort, Head and Put use the priority lane of the client, so that
// parts on their way cannot keep a finished file from being published.
func (f *FS) API() multipart.API { return adapter{f} }

// adapter makes S3 calls of the calls of multipart.API.
type adapter struct{ f *FS }

var _ multipart.API = adapter{}

// Create implements multipart.API.
func (a adapter) Create(ctx context.Context, t multipart.Target, token string) (string, error) {
	in := &s3.CreateMultipartUploadInput{
		Bucket: aws.String(t.Bucket), Key: aws.String(t.Key), Metadata: map[string]string{TokenMetadata: token},
	}
	if a.f.settings.Checksums {
		// One declaration over Create, UploadPart and Complete: stores are strict
		// about a part list that carries what was not declared here.
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc64nvme
		in.ChecksumType = types.ChecksumTypeFullObject
	}
	c := call{op: "create upload", path: pathOf(t), write: true, permission: "s3:PutObject"}
	out, err := invokeKey(ctx, a.f, c, func(ctx context.Context) (*s3.CreateMultipartUploadOutput, error) {
		return a.f.client.s3.CreateMultipartUpload(ctx, in)
	})
	if err != nil {
		return "", asMultipart(c, err)
	}
	id := aws.ToString(out.UploadId)
	if id == "" {
		return "", asMultipart(c, missing(c, "UploadId element"))
	}
	return id, nil
}

// UploadPart implements multipart.API.
func (a adapter) UploadPart(ctx context.Context, t multipart.Target, uploadID string, number int32, body io.ReadSeeker, size int64, crc multipart.CRC) (string, error) {
	in := &s3.UploadPartInput{
		Bucket: aws.String(t.Bucket), Key: aws.String(t.Key), UploadId: aws.String(uploadID), PartNumber: aws.Int32(number),
		Body: body, ContentLength: aws.Int64(size),
	}
	if a.f.settings.Checksums {
		in.ChecksumCRC64NVME = aws.String(crc.String())
	}
	c := call{op: "upload part", path: pathOf(t), uploadID: uploadID, part: number, size: size, write: true, permission: "s3:PutObject"}
	out, err := invokeKey(ctx, a.f, c, func(ctx context.Context) (*s3.UploadPartOutput, error) {
		return a.f.client.s3.UploadPart(ctx, in)
	})
	if err != nil {
		return "", asMultipart(c, err)
	}
	if unquote(out.ETag) == "" {
		return "", asMultipart(c, missing(c, "ETag header"))
	}
	return unquote(out.ETag), nil
}

// Complete implements multipart.API. The answer is a claim: the caller looks.
func (a adapter) Complete(ctx context.Context, t multipart.Target, uploadID string, parts []multipart.Part, size int64, crc multipart.CRC) (multipart.Object, error) {
	list := make([]types.CompletedPart, len(parts))
	for i, p := range parts {
		list[i] = types.CompletedPart{PartNumber: aws.Int32(p.Number), ETag: aws.String(`"` + p.ETag + `"`)}
		if a.f.settings.Checksums {
			list[i].ChecksumCRC64NVME = aws.String(p.CRC.String())
		}
	}
	in := &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(t.Bucket), Key: aws.String(t.Key), UploadId: aws.String(uploadID),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: list}, MpuObjectSize: aws.Int64(size),
	}
	if a.f.settings.Checksums {
		in.ChecksumCRC64NVME = aws.String(crc.String())
		in.ChecksumType = types.ChecksumTypeFullObject
	}
	c := call{op: "complete", path: pathOf(t), uploadID: uploadID, write: true, permission: "s3:PutObject"}
	out, err := invokeKey(ctx, a.f, c, func(ctx context.Context) (*s3.CompleteMultipartUploadOutput, error) {
		return a.f.client.s3.CompleteMultipartUpload(ctx, in)
	})
	if err != nil {
		return multipart.Object{}, asMultipart(c, err)
	}
	if unquote(out.ETag) == "" {
		// A 200 that was cut short, or the store died after its first line: neither
		// success nor failure.
		return multipart.Object{}, asMultipart(c, missing(c, "ETag element"))
	}
	o := multipart.Object{Size: size, ETag: unquote(out.ETag)}
	o.CRC, o.HasCRC = a.f.fullCRC(out.ChecksumCRC64NVME, out.ChecksumType)
	return o, nil
}

// Abort implements multipart.API.
func (a adapter) Abort(ctx context.Context, t multipart.Target, uploadID string) error {
	c := call{op: "abort", path: pathOf(t), uploadID: uploadID, write: true, permission: "s3:AbortMultipartUpload"}
	_, err := invokeKey(ctx, a.f, c, func(ctx context.Context) (*s3.AbortMultipartUploadOutput, error) {
		return a.f.client.s3.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: aws.String(t.Bucket), Key: aws.String(t.Key), UploadId: aws.String(uploadID),
		})
	})
	return asMultipart(c, err)
}

// ListParts implements multipart.API.
func (a adapter) ListParts(ctx context.Context, t multipart.Target, uploadID string) ([]multipart.Part, error) {
	c := call{op: "list parts", path: pathOf(t), uploadID: uploadID, permission: "s3:ListMultipartUploadParts"}
	in := &s3.ListPartsInput{Bucket: aws.String(t.Bucket), Key: aws.String(t.Key), UploadId: aws.String(uploadID)}
	var parts []multipart.Part
	for {
		out, err := invokeKey(ctx, a.f, c, func(ctx context.Context) (*s3.ListPartsOutput, error) {
			return a.f.client.s3.ListParts(ctx, in)
		})
		if err != nil {
			return nil, asMultipart(c, err)
		}
		last := int32(0)
		if len(parts) > 0 {
			last = parts[len(parts)-1].Number
		}
		for _, p := range out.Parts {
			n := aws.ToInt32(p.PartNumber)
			if n <= last {
				return nil, asMultipart(c, &OpError{
					Op: c.op, Path: c.path, UploadID: uploadID, Class: permanent,
					Err: fmt.Errorf("the store lists part %d behind part %d", n, last),
				})
			}
			last = n
			part := multipart.Part{Number: n, Size: aws.ToInt64(p.Size), ETag: unquote(p.ETag)}
			if a.f.settings.Checksums && p.ChecksumCRC64NVME != nil {
				if crc, err := multipart.ParseCRC(*p.ChecksumCRC64NVME); err == nil {
					part.CRC = crc
				}
			}
			parts = append(parts, part)
		}
		if !aws.ToBool(out.IsTruncated) {
			return parts, nil
		}
		// Where to go on is the last part we have: stores differ in whether they say.
		if len(out.Parts) == 0 {
			return nil, asMultipart(c, &OpError{Op: c.op, Path: c.path, UploadID: uploadID, Class: permanent, Err: errPaging})
		}
		in.PartNumberMarker = aws.String(fmt.Sprint(last))
	}
}

// Put implements multipart.API.
func (a adapter) Put(ctx context.Context, t multipart.Target, token string, body io.ReadSeeker, size int64, crc multipart.CRC) (multipart.Object, error) {
	c := call{op: "put", path: pathOf(t), size: size, write: true, permission: "s3:PutObject"}
	in := a.f.putInput(c.path, body, size, crc)
	in.Metadata = map[string]string{TokenMetadata: token}
	out, err := a.f.put(retrymode.WithPriority(ctx), c, in)
	if err != nil {
		return multipart.Object{}, asMultipart(c, err)
	}
	return multipart.Object{Size: size, ETag: unquote(out.ETag), Token: token}, nil
}

// Head implements multipart.API.
func (a adapter) Head(ctx context.Context, t multipart.Target) (multipart.Object, error) {
	c := call{op: "head", path: pathOf(t), permission: "s3:GetObject"}
	i, err := a.f.head(ctx, c)
	if err != nil {
		return multipart.Object{}, asMultipart(c, err)
	}
	return multipart.Object{
		Size: i.Size, ETag: i.ETag, Token: i.Metadata[TokenMetadata], CRC: i.CRC, HasCRC: i.HasCRC, LastModified: i.LastModified,
	}, nil
}

func pathOf(t multipart.Target) Path { return Path{Bucket: t.Bucket, Key: t.Key} }

// invokeKey is invoke for calls that need a key.
func invokeKey[O any](ctx context.Context, f *FS, c call, fn func(context.Context) (O, error)) (O, error) {
	if c.path.Key == "" {
		var none O
		return none, noKey(c)
	}
	return invoke(ctx, f, c, fn)
}

// missing is the error for a success without what makes it one. A write that
// was answered like this may have been carried out.
func missing(c call, what string) error {
	class := permanent
	if c.op == "complete" {
		class = retrymode.Ambiguous
	}
	return &OpError{
		Op: c.op, Path: c.path, UploadID: c.uploadID, Part: c.part, Attempts: 1, Class: class, kind: ErrMissingHeader,
		Hint: "the store, or a proxy before it, does not speak S3 completely",
		Err:  fmt.Errorf("%w: the store reported success without an %s", ErrMissingHeader, what),
	}
}

// asMultipart gives an error the form multipart works with: the same facts, named once.
func asMultipart(c call, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*OpError](err)
	if !ok {
		return err
	}
	return &multipart.Error{
		Op: c.op, Target: multipart.Target{Bucket: c.path.Bucket, Key: c.path.Key}, UploadID: c.uploadID, Part: c.part,
		Attempts: e.Attempts, Hint: e.Hint, Err: reasonError{e},
	}
}
