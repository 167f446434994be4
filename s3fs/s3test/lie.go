package s3test

import "net/http"

// hasEffect tells writes from reads.
func hasEffect(op Op) bool {
	switch op {
	case CreateBucket, DeleteBucket, PutObject, DeleteObject, DeleteObjects,
		CreateMultipartUpload, UploadPart, CompleteMultipartUpload, AbortMultipartUpload:
		return true
	default:
		return false
	}
}

// lie answers a write as if it had succeeded, from nothing but the request. Reads are honest.
func (s *Server) lie(c *call) *response {
	if !hasEffect(c.req.Op) {
		return s.handle(c, nil)
	}
	res := newResponse(http.StatusOK)
	switch c.req.Op {
	case PutObject, UploadPart:
		res.header.Set("ETag", quoted(etagOf(c.body)))
		if alg, value, err := c.announcedSum(); err == nil && alg != nil {
			res.header.Set(alg.header(), value)
		}
	case DeleteBucket, DeleteObject, AbortMultipartUpload:
		res.status = http.StatusNoContent
	case DeleteObjects:
		var req deleteRequest
		var out deleteResult
		if parseXML(c.body, &req) == nil && !req.Quiet {
			for _, o := range req.Objects {
				out.Deleted = append(out.Deleted, deleted{o.Key})
			}
		}
		res.xml(marshal(out))
	case CreateMultipartUpload:
		s.mu.Lock()
		id, name := s.newUploadID()
		s.mu.Unlock()
		c.req.Upload = name
		alg, kind, _ := s.checksumType(c.req.Header)
		return createResponse(c, id, alg, kind)
	case CompleteMultipartUpload:
		etags := make([]string, len(c.parts))
		for i, p := range c.parts {
			etags[i] = p.ETag
		}
		out := completeResult{
			Location: s.URL() + "/" + c.req.Bucket + "/" + c.req.Key,
			Bucket:   c.req.Bucket, Key: c.req.Key, ETag: quoted(multipartETag(etags)),
		}
		if alg, value, err := c.announcedSum(); err == nil && alg != nil {
			out.checksumFields = checksum{alg: alg, value: value}.fields()
			out.ChecksumType = c.req.Header.Get("x-amz-checksum-type")
		}
		res.xml(marshal(out))
	default:
	}
	return res
}
