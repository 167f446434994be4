package retrymode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/require"
)

// wire is a store without a network: answer decides about each attempt.
type wire struct {
	latency time.Duration
	answer  func(n int, req *http.Request, body []byte) (*http.Response, error) // n = 1, 2, ... over all attempts

	mu       sync.Mutex
	seen     []sighting
	inFlight int
	peak     int
}

type sighting struct {
	at   time.Time
	url  string
	body []byte
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		_ = req.Body.Close()
	}
	w.mu.Lock()
	w.seen = append(w.seen, sighting{time.Now(), req.URL.String(), body})
	n := len(w.seen)
	w.inFlight++
	w.peak = max(w.peak, w.inFlight)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.inFlight--
		w.mu.Unlock()
	}()
	if w.latency > 0 {
		select {
		case <-time.After(w.latency):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	resp, err := w.answer(n, req, body)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

func (w *wire) attempts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// gaps are the times between consecutive attempts.
func (w *wire) gaps() []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(w.seen); i++ {
		gaps = append(gaps, w.seen[i].at.Sub(w.seen[i-1].at))
	}
	return gaps
}

// reply builds an answer; headers are name, value, name, value.
func reply(status int, body string, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func xmlError(code string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + `</Code><Message>recorded</Message></Error>`
}

const completed = `<?xml version="1.0" encoding="UTF-8"?><CompleteMultipartUploadResult><ETag>"e-1"</ETag></CompleteMultipartUploadResult>`

// success is a good answer for any operation of this test.
func success(req *http.Request) *http.Response {
	q := req.URL.Query()
	switch {
	case req.Method == http.MethodPost && q.Has("uploads"):
		return reply(200, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
	case req.Method == http.MethodPost && q.Has("uploadId"):
		return reply(200, completed)
	case req.Method == http.MethodGet && q.Has("list-type"):
		return reply(200, `<ListBucketResult></ListBucketResult>`)
	case req.Method == http.MethodGet && q.Has("uploadId"):
		return reply(200, `<ListPartsResult></ListPartsResult>`)
	case req.Method == http.MethodDelete:
		return reply(204, "")
	}
	return reply(200, "", "ETag", `"e"`)
}

// always gives one answer to everything.
func always(status int, body string, headers ...string) *wire {
	return &wire{answer: func(_ int, req *http.Request, _ []byte) (*http.Response, error) {
		if req.Method == http.MethodHead {
			return reply(status, "", headers...), nil
		}
		return reply(status, body, headers...), nil
	}}
}

// untilStopped gives an answer n times and then succeeds.
func untilStopped(n, status int, body string, headers ...string) *wire {
	bad := always(status, body, headers...)
	return &wire{answer: func(i int, req *http.Request, b []byte) (*http.Response, error) {
		if i <= n {
			return bad.answer(i, req, b)
		}
		return success(req), nil
	}}
}

func newRetryer(t *testing.T, o Options, opts ...Option) *Retryer {
	t.Helper()
	r, err := New(o, opts...)
	require.NoError(t, err)
	return r
}

func standard(retries int) Options {
	o := DefaultOptions()
	o.Mode, o.MaxRetries = Standard, retries
	return o
}

func adaptive(retries int) Options {
	o := standard(retries)
	o.Mode = Adaptive
	return o
}

// sdkAdaptive is adaptive mode with the limiter of the SDK.
func sdkAdaptive(retries int) Options {
	o := adaptive(retries)
	o.Limiter = LimiterSDK
	return o
}

// newClient is a real client with r in front of w.
func newClient(r *Retryer, w http.RoundTripper, opts ...func(*s3.Options)) *s3.Client {
	o := s3.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("https://store.example"),
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider("AK", "SK", ""),
		HTTPClient:   &http.Client{Transport: w},
		Retryer:      r,
		APIOptions:   nil,

		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	o.APIOptions = append(o.APIOptions, r.Middleware())
	return s3.New(o, opts...)
}

var (
	bucket = aws.String("b")
	key    = aws.String("k")
	upload = aws.String("u")
)

type operation struct {
	name string
	do   func(ctx context.Context, c *s3.Client) error
}

func drop[T any](_ T, err error) error { return err }

// operations are the calls that this project makes.
func operations() []operation {
	return []operation{
		{"GetObject", get}, {"HeadObject", head}, {"PutObject", put}, {"CompleteMultipartUpload", complete},
		{"UploadPart", func(ctx context.Context, c *s3.Client) error { return uploadPart(ctx, c, 1, []byte("part")) }},
		{"CreateMultipartUpload", func(ctx context.Context, c *s3.Client) error {
			return drop(c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: key}))
		}},
		{"AbortMultipartUpload", func(ctx context.Context, c *s3.Client) error {
			return drop(c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: bucket, Key: key, UploadId: upload}))
		}},
		{"ListObjectsV2", func(ctx context.Context, c *s3.Client) error {
			return drop(c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket}))
		}},
		{"ListParts", func(ctx context.Context, c *s3.Client) error {
			return drop(c.ListParts(ctx, &s3.ListPartsInput{Bucket: bucket, Key: key, UploadId: upload}))
		}},
		{"DeleteObject", func(ctx context.Context, c *s3.Client) error {
			return drop(c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key}))
		}},
	}
}

func get(ctx context.Context, c *s3.Client) error {
	out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	return out.Body.Close()
}

func head(ctx context.Context, c *s3.Client) error {
	return drop(c.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key}))
}

func put(ctx context.Context, c *s3.Client) error {
	return drop(c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: bytes.NewReader([]byte("object"))}))
}

func putIfAbsent(ctx context.Context, c *s3.Client) error {
	return drop(c.PutObject(ctx, &s3.PutObjectInput{
		Bucket: bucket, Key: key, Body: bytes.NewReader([]byte("object")), IfNoneMatch: aws.String("*"),
	}))
}

func complete(ctx context.Context, c *s3.Client) error {
	return drop(c.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: bucket, Key: key, UploadId: upload,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: aws.String("e"), PartNumber: aws.Int32(1)}}},
	}))
}

func uploadPart(ctx context.Context, c *s3.Client, number int32, data []byte) error {
	return drop(c.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: bucket, Key: key, UploadId: upload, PartNumber: aws.Int32(number), Body: bytes.NewReader(data),
	}))
}

// half is a random source whose Float64 is exactly 0.5.
type half struct{}

func (half) Uint64() uint64 { return 1 << 52 }

// seed is a random source that differs from test to test and repeats from run to run.
func seed(n uint64) Option { return WithRandom(rand.NewPCG(n, 1)) }

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

var errBoom = errors.New("boom")
