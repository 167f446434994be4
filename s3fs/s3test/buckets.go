package s3test

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
)

func (s *Server) createBucket(c *call) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[c.req.Bucket] != nil {
		return nil, fault("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.", "BucketName", c.req.Bucket)
	}
	s.buckets[c.req.Bucket] = newBucket()
	res := newResponse(http.StatusOK)
	res.header.Set("Location", "/"+c.req.Bucket)
	return res, nil
}

func (s *Server) headBucket(c *call) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.findBucket(c); err != nil {
		return nil, err
	}
	res := newResponse(http.StatusOK)
	res.header.Set("x-amz-bucket-region", s.o.Region)
	return res, nil
}

func (s *Server) deleteBucket(c *call) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.findBucket(c)
	if err != nil {
		return nil, err
	}
	// Uploads in progress do not keep a bucket alive in S3; they end with it.
	if len(b.objects) > 0 {
		return nil, fault("BucketNotEmpty", "The bucket you tried to delete is not empty", "BucketName", c.req.Bucket)
	}
	delete(s.buckets, c.req.Bucket)
	maps.DeleteFunc(s.uploads, func(_ string, u *upload) bool { return u.bucket == c.req.Bucket })
	return newResponse(http.StatusNoContent), nil
}

type bucketList struct {
	XMLName xml.Name      `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
	Buckets []bucketEntry `xml:"Buckets>Bucket"`
}

type bucketEntry struct{ Name, CreationDate string }

func (s *Server) listBuckets() (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out bucketList
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		out.Buckets = append(out.Buckets, bucketEntry{name, s.buckets[name].created.UTC().Format(listTime)})
	}
	return newResponse(http.StatusOK).xml(marshal(out)), nil
}
