package storemodel_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func (s *script) objects() {
	fresh := func(in *s3.PutObjectInput) { in.IfNoneMatch = aws.String("*") }
	owned := func(in *s3.PutObjectInput) {
		in.ChecksumCRC64NVME, in.Metadata = crcOf([]byte("second")), map[string]string{tokenKey: "t-1"}
	}
	wrong := func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = crcOf([]byte("else")) }
	elsewhere := func(in *s3.PutObjectInput) { in.Bucket = aws.String(noBucket) }

	s.do("create bucket", "200", func(ctx context.Context) (string, error) {
		_, err := s.c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)})
		return "", err
	})
	s.put("put plain", "200", "plain", "first")
	s.head("head plain", "200", bucket, "plain")
	s.put("put over with crc and token", "200", "o", "first")
	s.put("put over existing", "200", "o", "second", owned)
	s.put("put wrong crc", "400 BadDigest", "o", "third", wrong)
	s.put("put wrong crc on new key", "400 BadDigest", "never", "third", wrong)
	s.head("head after refused new put", "404 NotFound", bucket, "never")
	s.put("put if-none-match existing", "412 PreconditionFailed", "o", "fourth", fresh)
	s.put("put if-none-match new", "200", "n", "fresh", fresh, func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = crcOf([]byte("fresh")) })
	s.put("put if-none-match again", "412 PreconditionFailed", "n", "fresh", fresh)
	s.put("put empty", "200", "empty", "", func(in *s3.PutObjectInput) { in.ChecksumCRC64NVME = crcOf(nil) })
	s.put("put missing bucket", "404 NoSuchBucket", "o", "x", elsewhere)

	s.head("head", "200", bucket, "o")
	s.head("head missing key", "404 NotFound", bucket, "gone")
	s.head("head missing bucket", "404 NotFound", noBucket, "o")
	s.get("get", "200", bucket, "o", "")
	s.get("get new", "200", bucket, "n", "")
	s.get("get empty", "200", bucket, "empty", "")
	s.get("get range", "206", bucket, "o", "bytes=1-3")
	s.get("get range open end", "206", bucket, "o", "bytes=2-")
	s.get("get range beyond the end", "206", bucket, "o", "bytes=4-99")
	s.get("get range suffix", "206", bucket, "o", "bytes=-2")
	s.get("get range outside", "416 InvalidRange", bucket, "o", "bytes=6-9")
	s.get("get missing key", "404 NoSuchKey", bucket, "gone", "")
	s.get("get missing bucket", "404 NoSuchBucket", noBucket, "o", "")
	s.remove("delete", "204", bucket, "n")
	s.remove("delete missing key", "204", bucket, "n")
	s.remove("delete missing bucket", "404 NoSuchBucket", noBucket, "n")
	s.head("head deleted", "404 NotFound", bucket, "n")
}

func (s *script) uploads() {
	a, b, tail := block('a'), block('b'), []byte("tail")
	id := s.create("create", "200", bucket, "up/one")
	s.create("create in missing bucket", "404 NoSuchBucket", noBucket, "up/one")
	s.parts("list parts of none", "200", "up/one", id, 10, "")
	one := s.part("part 1", "200", "up/one", id, 1, a, a)
	s.part("part wrong crc", "400 BadDigest", "up/one", id, 2, b, a)
	s.part("part number 0", "400 InvalidArgument", "up/one", id, 0, tail, tail)
	s.part("part number 10001", "400 InvalidArgument", "up/one", id, 10001, tail, tail)
	old := s.part("part 2", "200", "up/one", id, 2, a, a)
	two := s.part("part 2 overwritten", "200", "up/one", id, 2, b, b)
	s.part("part 7, in no list later", "200", "up/one", id, 7, tail, tail)
	last := s.part("part 10000", "200", "up/one", id, 10000, tail, tail)
	s.part("part of an upload of another key", "404 NoSuchUpload", "up/two", id, 1, tail, tail)
	s.parts("list parts", "200", "up/one", id, 1000, "")
	s.parts("list parts first page", "200", "up/one", id, 2, "")
	s.parts("list parts second page", "200", "up/one", id, 2, "2")
	s.complete("complete with the overwritten etag", "400 InvalidPart", "up/one", id, slices.Concat(a, a, tail), listed(one, old, last))
	s.head("head before complete", "404 NotFound", bucket, "up/one")

	whole := slices.Concat(a, b, tail)
	s.complete("complete a subset of the parts", "200", "up/one", id, whole, listed(one, two, last))
	s.head("head after complete", "200", bucket, "up/one")
	s.get("get after complete", "200", bucket, "up/one", "")
	s.get("get range over a part boundary", "206", bucket, "up/one", fmt.Sprintf("bytes=%d-%d", minPart-2, minPart+1))
	s.complete("complete again", "200", "up/one", id, whole, listed(one, two, last))
	s.head("head after complete again", "200", bucket, "up/one")
	s.complete("complete again with another list", "404 NoSuchUpload", "up/one", id, a, listed(one))
	s.head("head after complete with another list", "200", bucket, "up/one")
	s.abort("abort after complete", "404 NoSuchUpload", "up/one", id)
	// A small body: a server that refuses a large one early breaks the connection.
	s.part("part after complete", "404 NoSuchUpload", "up/one", id, 1, tail, tail)
	s.parts("list parts after complete", "404 NoSuchUpload", "up/one", id, 10, "")
	s.complete("complete unknown upload, object exists", "404 NoSuchUpload", "up/one", "00000000-0000-0000-0000-000000000000", a, listed(one))
	s.head("head after unknown complete", "200", bucket, "up/one")
	s.remove("delete completed", "204", bucket, "up/one")
	s.complete("complete again after delete", "200", "up/one", id, whole, listed(one, two, last))
	s.head("head after complete after delete", "404 NotFound", bucket, "up/one")
}

func (s *script) refusedCompletes() {
	const key = "refused/k"
	a, small := block('a'), []byte("small")
	id := s.create("create refused", "200", bucket, key)
	one := s.part("refused part 1", "200", key, id, 1, a, a)
	two := s.part("refused part 2", "200", key, id, 2, small, small)
	three := s.part("refused part 3", "200", key, id, 3, small, small)
	missing := types.CompletedPart{PartNumber: aws.Int32(9), ETag: two.ETag, ChecksumCRC64NVME: two.ChecksumCRC64NVME}
	forged, miscounted := two, two
	forged.ETag = aws.String(`"00000000000000000000000000000000"`)
	miscounted.ChecksumCRC64NVME = crcOf([]byte("else"))
	whole := slices.Concat(a, small)

	s.complete("complete wrong etag", "400 InvalidPart", key, id, whole, listed(one, forged))
	s.complete("complete missing part", "400 InvalidPart", key, id, whole, listed(one, missing))
	s.complete("complete wrong order", "400 InvalidPartOrder", key, id, whole, listed(two, one))
	s.complete("complete wrong order of large parts", "400 InvalidPartOrder", key, id, a, listed(one, one))
	s.complete("complete empty list", "400 MalformedXML", key, id, whole, nil)
	s.complete("complete too small part", "400 EntityTooSmall", key, id, []byte("smallsmall"), listed(two, three))
	s.complete("complete wrong part crc", "400 InvalidPart", key, id, whole, listed(one, miscounted))
	s.complete("complete wrong whole crc", "400 BadDigest", key, id, whole, listed(one, two),
		func(in *s3.CompleteMultipartUploadInput) { in.ChecksumCRC64NVME = crcOf(small) })
	s.head("head after wrong whole crc", "404 NotFound", bucket, key)
	s.complete("complete wrong size", "400 InvalidRequest", key, id, whole, listed(one, two),
		func(in *s3.CompleteMultipartUploadInput) { in.MpuObjectSize = aws.Int64(7) })
	s.complete("complete under another key", "404 NoSuchUpload", "refused/other", id, whole, listed(one, two))
	s.head("head after refusals", "404 NotFound", bucket, key)
	s.parts("list parts after refusals", "200", key, id, 10, "")
	s.put("put at the key of the upload", "200", key, "here first")
	s.complete("complete if-none-match existing", "412 PreconditionFailed", key, id, whole, listed(one, two),
		func(in *s3.CompleteMultipartUploadInput) { in.IfNoneMatch = aws.String("*") })
	s.head("head after complete if-none-match", "200", bucket, key)
	s.complete("complete right after refusals", "200", key, id, whole, listed(one, two))
	s.get("get after refusals", "200", bucket, key, "")

	id = s.create("create for a small last part", "200", bucket, "refused/small")
	one = s.part("single small part", "200", "refused/small", id, 1, small, small)
	s.complete("complete single small part", "200", "refused/small", id, small, listed(one))
	s.head("head single small part", "200", bucket, "refused/small")
}

func (s *script) aborts() {
	const key, taken = "aborted/k", "aborted/taken"
	body := []byte("x")
	id := s.create("create to abort", "200", bucket, key)
	one := s.part("part to abort", "200", key, id, 1, body, body)
	s.abort("abort", "204", key, id)
	s.abort("abort again", "404 NoSuchUpload", key, id)
	s.abort("abort of an unknown upload", "404 NoSuchUpload", key, "00000000-0000-0000-0000-000000000000")
	s.part("part after abort", "404 NoSuchUpload", key, id, 2, body, body)
	s.parts("list parts after abort", "404 NoSuchUpload", key, id, 10, "")
	s.complete("complete after abort", "404 NoSuchUpload", key, id, body, listed(one))
	s.head("head after abort", "404 NotFound", bucket, key)

	s.put("put at a key to abort", "200", taken, "foreign")
	id = s.create("create at a taken key", "200", bucket, taken)
	one = s.part("part at a taken key", "200", taken, id, 1, body, body)
	s.abort("abort at a taken key", "204", taken, id)
	s.complete("complete after abort, object exists", "404 NoSuchUpload", taken, id, body, listed(one))
	s.head("head after abort, object exists", "200", bucket, taken)
}

func (s *script) listings() {
	for _, key := range []string{"ls/a", "ls/b/1", "ls/b/2", "ls/c d", "ls/é", "ls-else"} {
		s.put("put "+key, "200", key, "of "+key)
	}
	s.objectPages("list", "ls/", "", "", 2)
	s.objectPages("list delimited", "ls/", "/", "", 2)
	s.objectPages("list all", "ls", "", "", 100)
	s.objectPages("list after", "ls", "", "ls/b/1", 100)
	s.objectPages("list nothing", "none/", "", "", 100)
	s.page("list missing bucket", "404 NoSuchBucket", &s3.ListObjectsV2Input{Bucket: aws.String(noBucket)})

	ids := map[string]string{}
	keys := []string{"mp/a", "mp/b", "mp/c/1", "mp-else"}
	for _, key := range keys {
		ids[key] = s.create("create "+key, "200", bucket, key)
	}
	s.uploadPages("list uploads", "mp/", 100, true)
	s.uploadPages("list uploads paged", "mp", 3, true)
	s.uploadPages("list uploads paged by key", "mp", 3, false)
	s.uploadPages("list uploads of nothing", "none/", 100, true)
	for _, key := range keys {
		s.abort("abort "+key, "204", key, ids[key])
	}
	s.uploadPages("list uploads when all have ended", "", 100, true)
}
