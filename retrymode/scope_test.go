package retrymode

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/retrymode/gate"
)

func TestScopeOfEveryOperation(t *testing.T) {
	text := aws.String
	for _, tt := range []struct {
		scope     Scope
		depth     int
		operation string
		in        any
		want      string
	}{
		{ScopeBucket, 1, "GetObject", &s3.GetObjectInput{Bucket: bucket, Key: text("x/y/z")}, "b/ read"},
		{ScopeBucket, 1, "HeadObject", &s3.HeadObjectInput{Bucket: bucket, Key: text("x/y/z")}, "b/ read"},
		{ScopeBucket, 1, "ListObjectsV2", &s3.ListObjectsV2Input{Bucket: bucket, Prefix: text("x/y/")}, "b/ read"},
		{ScopeBucket, 1, "ListParts", &s3.ListPartsInput{Bucket: bucket, Key: text("x/y/z")}, "b/ read"},
		{ScopeBucket, 1, "ListMultipartUploads", &s3.ListMultipartUploadsInput{Bucket: bucket, Prefix: text("x/")}, "b/ read"},
		{ScopeBucket, 1, "HeadBucket", &s3.HeadBucketInput{Bucket: bucket}, "b/ read"},
		{ScopeBucket, 1, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("x/y/z")}, "b/ write"},
		{ScopeBucket, 1, "UploadPart", &s3.UploadPartInput{Bucket: bucket, Key: text("x/y/z")}, "b/ write"},
		{ScopeBucket, 1, "CreateMultipartUpload", &s3.CreateMultipartUploadInput{Bucket: bucket, Key: text("x")}, "b/ write"},
		{ScopeBucket, 1, "CompleteMultipartUpload", &s3.CompleteMultipartUploadInput{Bucket: bucket, Key: text("x")}, "b/ write"},
		{ScopeBucket, 1, "AbortMultipartUpload", &s3.AbortMultipartUploadInput{Bucket: bucket, Key: text("x")}, "b/ write"},
		{ScopeBucket, 1, "DeleteObject", &s3.DeleteObjectInput{Bucket: bucket, Key: text("x")}, "b/ write"},
		{ScopeBucket, 1, "DeleteObjects", &s3.DeleteObjectsInput{Bucket: bucket}, "b/ write"},

		{ScopePrefix, 1, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("x/y/z")}, "b/x/ write"},
		{ScopePrefix, 2, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("x/y/z")}, "b/x/y/ write"},
		{ScopePrefix, 3, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("x/y/z")}, "b/x/y/ write"},
		{ScopePrefix, 1, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("name")}, "b/ write"},
		{ScopePrefix, 2, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("x//z")}, "b/x// write"},
		{ScopePrefix, 1, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("/z")}, "b// write"},
		{ScopePrefix, 1, "ListObjectsV2", &s3.ListObjectsV2Input{Bucket: bucket, Prefix: text("x/y/")}, "b/x/ read"},
		{ScopePrefix, 2, "ListObjectsV2", &s3.ListObjectsV2Input{Bucket: bucket, Prefix: text("x/y/")}, "b/x/y/ read"},
		{ScopePrefix, 2, "ListObjectsV2", &s3.ListObjectsV2Input{Bucket: bucket, Prefix: text("x/part")}, "b/x/ read"},
		{ScopePrefix, 1, "ListObjectsV2", &s3.ListObjectsV2Input{Bucket: bucket}, "b/ read"},
		{ScopePrefix, 1, "ListMultipartUploads", &s3.ListMultipartUploadsInput{Bucket: bucket, Prefix: text("x/y/")}, "b/x/ read"},
		{ScopePrefix, 1, "DeleteObjects", &s3.DeleteObjectsInput{Bucket: bucket}, "b/ write"},

		{ScopeEndpoint, 1, "PutObject", &s3.PutObjectInput{Bucket: bucket, Key: text("x/y/z")}, "endpoint"},
		{ScopeEndpoint, 1, "GetObject", &s3.GetObjectInput{Bucket: bucket, Key: text("x/y/z")}, "endpoint"},
	} {
		o := DefaultOptions()
		o.Scope, o.PrefixDepth = tt.scope, tt.depth
		assert.Equal(t, tt.want, o.scopeOf(tt.operation, tt.in).String(), "%s of %s, depth %d", tt.scope, tt.operation, tt.depth)
	}
}

// Whatever an input looks like, it has a scope.
func TestScopeOfAnythingElseIsNoPanic(t *testing.T) {
	type odd struct {
		Bucket string // not a pointer
		Key    *int
	}
	for _, in := range []any{nil, 7, "bucket", (*s3.PutObjectInput)(nil), &s3.ListBucketsInput{}, &s3.PutObjectInput{}, odd{Bucket: "b"}, &odd{}} {
		for _, s := range []Scope{ScopeBucket, ScopePrefix, ScopeEndpoint} {
			o := DefaultOptions()
			o.Scope = s
			got := o.scopeOf("PutObject", in)
			assert.Empty(t, got.bucket+got.prefix, "%T", in)
		}
	}
}

func putKey(bucket, key string) func(context.Context, *s3.Client) error {
	return func(ctx context.Context, c *s3.Client) error {
		return drop(c.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)}))
	}
}

func getKey(bucket, key string) func(context.Context, *s3.Client) error {
	return func(ctx context.Context, c *s3.Client) error {
		return drop(c.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String(key)}))
	}
}

func listPrefix(bucket, prefix string) func(context.Context, *s3.Client) error {
	return func(ctx context.Context, c *s3.Client) error {
		return drop(c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix)}))
	}
}

// The store lets ten of one kind of call through in a second, 16 callers make them all the time, and somebody else's calls of another kind go
// as if there were nothing: no wait, no hold, no retry. Where both share a gate they do wait.
func TestThrottledScopeDoesNotDelayAnother(t *testing.T) {
	for _, tt := range []struct {
		name          string
		scope         Scope
		depth         int
		noisy, victim func(context.Context, *s3.Client) error
		refuse        func(*http.Request) bool
		shared        bool
	}{
		{"bucket from bucket", ScopeBucket, 1, putKey("a", "k"), putKey("b", "k"), onPath("/a/"), false},
		{"reads from writes", ScopeBucket, 1, getKey("b", "k"), putKey("b", "k"), onMethod("GET"), false},
		{"writes from reads", ScopeBucket, 1, putKey("b", "k"), getKey("b", "k"), onMethod("PUT"), false},
		{"prefix from prefix", ScopePrefix, 1, putKey("b", "hot/k"), putKey("b", "cold/k"), onPath("/b/hot/"), false},
		{"prefix from the whole", ScopePrefix, 1, putKey("b", "hot/k"), putKey("b", "k"), onPath("/b/hot/"), false},
		{"prefix of two segments", ScopePrefix, 2, putKey("b", "x/hot/k"), putKey("b", "x/cold/k"), onPath("/b/x/hot/"), false},
		{"listing of another prefix", ScopePrefix, 1, getKey("b", "hot/k"), listPrefix("b", "cold/"), onPath("/b/hot/"), false},
		{"listing of the same prefix", ScopePrefix, 1, getKey("b", "hot/k"), listPrefix("b", "hot/"), onPath("/b/hot/"), true},
		{"prefix in its bucket", ScopeBucket, 1, putKey("b", "hot/k"), putKey("b", "cold/k"), onPath("/b/hot/"), true},
		{"two segments at a depth of one", ScopePrefix, 1, putKey("b", "x/hot/k"), putKey("b", "x/cold/k"), onPath("/b/x/hot/"), true},
		{"bucket on its endpoint", ScopeEndpoint, 1, putKey("a", "k"), putKey("b", "k"), onPath("/a/"), true},
		{"reads on their endpoint", ScopeEndpoint, 1, putKey("b", "k"), getKey("b", "k"), onMethod("PUT"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := adaptive(10)
				o.Scope, o.PrefixDepth = tt.scope, tt.depth
				r := newRetryer(t, o, seed(1))
				noisy := wall(10*time.Millisecond, constant(10), slowDown)
				w := &wire{latency: 10 * time.Millisecond}
				w.answer = func(n int, req *http.Request, body []byte) (*http.Response, error) {
					if tt.refuse(req) {
						return noisy.answer(n, req, body)
					}
					return success(req), nil
				}
				c := newClient(r, w)
				ctx, stop := context.WithCancel(t.Context())
				time.AfterFunc(1800*time.Millisecond, stop)
				var wg sync.WaitGroup
				for range 16 {
					wg.Go(func() {
						for ctx.Err() == nil {
							_ = tt.noisy(ctx, c)
						}
					})
				}
				slowest := time.Duration(0)
				for ctx.Err() == nil {
					start := time.Now()
					require.NoError(t, tt.victim(t.Context(), c))
					slowest = max(slowest, time.Since(start))
					time.Sleep(50 * time.Millisecond)
				}
				wg.Wait()
				if tt.shared {
					assert.Greater(t, slowest, 30*time.Millisecond)
				} else {
					assert.Equal(t, 10*time.Millisecond, slowest)
				}
			})
		})
	}
}

func onPath(prefix string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, prefix) }
}

func onMethod(m string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == m }
}

func TestEndpointIsOneGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(0)
		o.Scope = ScopeEndpoint
		r := newRetryer(t, o)
		c := newClient(r, slow(0))
		for _, op := range operations() {
			require.NoError(t, op.do(t.Context(), c))
		}
		require.NoError(t, putKey("other", "x/y")(t.Context(), c))
		gates := r.Stats().Gates
		require.Len(t, gates, 1)
		assert.Equal(t, "endpoint", gates[0].Scope)
	})
}

// visit makes one attempt in a scope of its own.
func visit(t *testing.T, r *Retryer, i int, o outcome) {
	t.Helper()
	p, err := r.limiter.Wait(t.Context(), attempt{scope: scope{bucket: "b", prefix: fmt.Sprintf("p%d/", i), kind: kindWrite}})
	require.NoError(t, err)
	p.Done(o)
}

// There may be as many prefixes as there are keys. Gates that know nothing are forgotten for new ones.
func TestNumberOfGatesIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(0)
		o.Scope = ScopePrefix
		r := newRetryer(t, o)
		for i := range 5000 {
			visit(t, r, i, outcome{sent: true, served: true})
			require.LessOrEqual(t, len(r.gates.gates), maxGates+1)
		}
		assert.NotContains(t, r.gates.gates, scope{}, "nobody had to share")
		assert.Equal(t, 5000%maxGates, len(r.gates.gates)%maxGates, "all idle ones went at once")
		nothingLeft(t, r)
	})
}

// Gates that pace are not forgotten; those who come too late share one, and are paced by it.
func TestScopesThatComeTooLateShareAGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := adaptive(0)
		o.Scope = ScopePrefix
		r := newRetryer(t, o)
		for i := range maxGates {
			for range 3 { // on, and not shut yet
				visit(t, r, i, outcome{sent: true, class: Throttle})
			}
		}
		for _, g := range r.Stats().Gates {
			require.True(t, g.On, g.Scope)
		}
		for i := range 100 {
			visit(t, r, maxGates+i, outcome{sent: true, served: true})
		}
		gates := r.Stats().Gates
		assert.Len(t, gates, maxGates+1)
		assert.Equal(t, "endpoint", gates[maxGates].Scope)
		assert.False(t, gates[maxGates].On)
		for i := range 5 {
			visit(t, r, maxGates+i, outcome{sent: true, class: Throttle})
		}
		assert.True(t, gateOf(r, scope{}).On)

		// As soon as one of them is idle and off there is room again.
		time.Sleep(2 * fullFor)
		r.gates.gates[scope{bucket: "b", prefix: "p0/", kind: kindWrite}].core = gate.New(r.params)
		r.gates.gates[scope{bucket: "b", prefix: "p1/", kind: kindWrite}].core = gate.New(r.params)
		visit(t, r, maxGates+7, outcome{sent: true, served: true})
		assert.Contains(t, r.gates.gates, scope{bucket: "b", prefix: fmt.Sprintf("p%d/", maxGates+7), kind: kindWrite})
		nothingLeft(t, r)
	})
}

// A gate with attempts in flight or in its queue is never forgotten, also not when it is off.
func TestGateInUseIsNotForgotten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRetryer(t, adaptive(0))
		var flying []permit
		for i := range 100 {
			p, err := r.limiter.Wait(t.Context(), attempt{scope: scope{bucket: "busy", prefix: fmt.Sprint(i)}})
			require.NoError(t, err)
			flying = append(flying, p)
		}
		soon := r.gates.gate(scope{bucket: "soon"}) // found, and not joined yet
		before := make(map[scope]*pacer)
		for s, p := range r.gates.gates {
			before[s] = p
		}
		for i := range 3 * maxGates {
			visit(t, r, i, outcome{sent: true, served: true})
		}
		for s, p := range before {
			assert.Same(t, p, r.gates.gates[s])
		}
		for _, p := range flying {
			p.Done(outcome{sent: true, served: true})
		}
		soon.users.Add(-1)
		nothingLeft(t, r)
	})
}

// Thousands of prefixes come and go on many goroutines while gates are made, forgotten and listed.
func TestGatesComeAndGoConcurrently(t *testing.T) {
	r := newRetryer(t, adaptive(0))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 800 {
				p, err := r.limiter.Wait(t.Context(), attempt{scope: scope{bucket: "b", prefix: fmt.Sprint((g*700 + i) % 3000)}})
				if assert.NoError(t, err) {
					p.Done(outcome{sent: true, served: true})
				}
				if i%500 == 0 {
					_ = r.Stats()
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, len(r.gates.gates), maxGates+1)
	nothingLeft(t, r)
}
