package s3test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Op is the name of an S3 operation as Amazon's API reference spells it.
type Op string

// The operations the server performs. Unsupported stands for everything else, which is answered 501 NotImplemented.
const (
	ListBuckets             Op = "ListBuckets"
	CreateBucket            Op = "CreateBucket"
	HeadBucket              Op = "HeadBucket"
	DeleteBucket            Op = "DeleteBucket"
	ListObjectsV2           Op = "ListObjectsV2"
	ListMultipartUploads    Op = "ListMultipartUploads"
	DeleteObjects           Op = "DeleteObjects"
	GetObject               Op = "GetObject"
	HeadObject              Op = "HeadObject"
	PutObject               Op = "PutObject"
	DeleteObject            Op = "DeleteObject"
	CreateMultipartUpload   Op = "CreateMultipartUpload"
	UploadPart              Op = "UploadPart"
	CompleteMultipartUpload Op = "CompleteMultipartUpload"
	AbortMultipartUpload    Op = "AbortMultipartUpload"
	ListParts               Op = "ListParts"
	Unsupported             Op = "Unsupported"
)

// Request is what the head of a request says. Control functions receive a copy of their own.
type Request struct {
	Op     Op
	Bucket string
	Key    string
	// UploadID is the id the client sent, Upload its name in the transcript ("upload-1"; "unknown" when the server never
	// made this id). Both are empty for operations without one.
	UploadID string
	Upload   string
	// Part is the part number of UploadPart, or of a read of one part; 0 otherwise or when it is not a number.
	Part int32
	// Size is the number of payload bytes the client announces; -1 when it announces none.
	Size int64
	// Attempt is the attempt number that AWS SDKs send with each request, 0 when there is none.
	Attempt int
	// N says how many requests the control has matched so far, this one included.
	N int

	Method string
	Query  url.Values
	Header http.Header

	ctx context.Context
}

// Context ends when the client has gone (noticed only after its body has been read) or the server is closed. A control
// function that waits should watch it.
func (r Request) Context() context.Context { return r.ctx }

// subresources name features of S3 that this server does not have. Without this list "PUT /bucket?versioning" would
// create a bucket.
var subresources = []string{
	"accelerate", "acl", "analytics", "attributes", "cors", "encryption", "intelligent-tiering", "inventory",
	"legal-hold", "lifecycle", "location", "logging", "metadataTable", "metrics", "notification", "object-lock",
	"ownershipControls", "policy", "policyStatus", "publicAccessBlock", "renameObject", "replication",
	"requestPayment", "restore", "retention", "select", "session", "tagging", "torrent", "versionId", "versioning",
	"versions", "website",
}

func (s *Server) parse(r *http.Request) Request {
	q := r.URL.Query()
	bucket, key := s.address(r)
	req := Request{
		Bucket:   bucket,
		Key:      key,
		UploadID: q.Get("uploadId"),
		Size:     r.ContentLength,
		Method:   r.Method,
		Query:    q,
		Header:   r.Header,
		ctx:      r.Context(),
	}
	if n, err := strconv.ParseInt(q.Get("partNumber"), 10, 32); err == nil {
		req.Part = int32(n)
	}
	if n, err := strconv.ParseInt(r.Header.Get("x-amz-decoded-content-length"), 10, 64); err == nil && n >= 0 {
		req.Size = n
	}
	req.Attempt = sdkAttempt(r.Header.Get("Amz-Sdk-Request"))
	req.Op = operation(r, req)
	return req
}

// address finds bucket and key: path style, or the bucket in front of the server's own host name.
func (s *Server) address(r *http.Request) (bucket, key string) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if b, ok := strings.CutSuffix(host, "."+memoryHost); ok {
		return b, path
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

func operation(r *http.Request, req Request) Op {
	for _, name := range subresources {
		if req.Query.Has(name) {
			return Unsupported
		}
	}
	switch {
	case r.Header.Get("x-amz-copy-source") != "":
		return Unsupported
	case req.Bucket == "":
		return pick(r.Method, http.MethodGet, ListBuckets)
	case req.Key == "":
		return bucketOperation(r.Method, req.Query)
	default:
		return objectOperation(r.Method, req.Query)
	}
}

func pick(method, want string, op Op) Op {
	if method == want {
		return op
	}
	return Unsupported
}

func bucketOperation(method string, q url.Values) Op {
	switch {
	case q.Has("uploads"):
		return pick(method, http.MethodGet, ListMultipartUploads)
	case q.Has("delete"):
		return pick(method, http.MethodPost, DeleteObjects)
	case q.Get("list-type") == "2":
		return pick(method, http.MethodGet, ListObjectsV2)
	case method == http.MethodPut:
		return CreateBucket
	case method == http.MethodHead:
		return HeadBucket
	case method == http.MethodDelete:
		return DeleteBucket
	default:
		return Unsupported
	}
}

func objectOperation(method string, q url.Values) Op {
	switch {
	case q.Has("uploads"):
		return pick(method, http.MethodPost, CreateMultipartUpload)
	case q.Has("uploadId"):
		i := slices.Index([]string{http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodGet}, method)
		if i < 0 {
			return Unsupported
		}
		return []Op{UploadPart, CompleteMultipartUpload, AbortMultipartUpload, ListParts}[i]
	case method == http.MethodGet:
		return GetObject
	case method == http.MethodHead:
		return HeadObject
	case method == http.MethodPut:
		return PutObject
	case method == http.MethodDelete:
		return DeleteObject
	default:
		return Unsupported
	}
}

// sdkAttempt reads "attempt=2; max=4".
func sdkAttempt(header string) int {
	for field := range strings.SplitSeq(header, ";") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(field), "attempt="); ok {
			n, err := strconv.Atoi(v)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
