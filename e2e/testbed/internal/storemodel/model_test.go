package storemodel_test

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
		os.Exit(store.Main())
	}
	goleak.VerifyTestMain(m)
}

const (
	bucket     = "model"
	noBucket   = "no-such-bucket"
	tokenKey   = "sluice-token" // the metadata that carries the owner token
	minPart    = 5 << 20        // S3's limit for every part but the last
	callLimit  = 30 * time.Second
	scriptTime = 2 * time.Minute
)

// difference is a known one between the model, which follows Amazon S3, and the real server.
type difference struct{ model, real, why string }

// allowed are the known differences by the name of the call; the reasons are those of versitygw v1.8.0.
func allowed() map[string]difference {
	a, b, tail := block('a'), block('b'), []byte("tail")
	const gone = "404 NoSuchUpload"
	whole := "etag=" + multipartETag(a, b, tail)
	proven := whole + " crc=" + *crcOf(slices.Concat(a, b, tail)) + " FULL_OBJECT"
	claim := "200 up/one etag=" + multipartETag(a) // of the list in the request, not of the object at the key
	return map[string]difference{
		"complete again": {"200 up/one " + proven, "200 up/one " + whole,
			"it answers a repeated Complete without the checksum"},
		"complete again with another list": {gone, claim,
			"it answers 200 to Complete of an unknown upload when any object is at the key"},
		"complete unknown upload, object exists": {gone, claim,
			"it answers 200 to Complete of an unknown upload when any object is at the key"},
		"complete after abort, object exists": {gone, "200 aborted/taken etag=" + multipartETag([]byte("x")),
			"it answers 200 to Complete of an aborted upload when any object is at the key"},
		"complete again after delete": {"200 up/one " + proven, gone,
			"it remembers no Complete, it looks for the object; Amazon repeats its answer"},
		"complete wrong order": {"400 InvalidPartOrder", "400 EntityTooSmall",
			"it looks at the size of a part before it looks at the order"},
		"list uploads paged, page 2": {"200 more=false [mp/c/1 FULL_OBJECT]", "400 InvalidArgument",
			"it drops the uploads of the key-marker and then misses the upload-id-marker, its own, among the rest"},
	}
}

// multipartETag is the ETag of an object of these parts, as Amazon makes it.
func multipartETag(parts ...[]byte) string {
	var sums []byte
	for _, p := range parts {
		sum := md5.Sum(p)
		sums = append(sums, sum[:]...)
	}
	return fmt.Sprintf(`"%x-%d"`, md5.Sum(sums), len(parts))
}

func TestModel_AnswersTheSameScriptOfCallsAsARealServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	model, real := runModel(ctx, t), runReal(ctx, t)

	allowed, seen := allowed(), map[string]bool{}
	for i, m := range model {
		require.Less(t, i, len(real))
		r := real[i]
		require.Equal(t, m.name, r.name)
		require.False(t, seen[m.name], "two calls are named %q", m.name)
		seen[m.name] = true
		assert.Equal(t, m.want, m.head, "%s: the model does not answer as documented", m.name)
		if d, ok := allowed[m.name]; ok {
			assert.NotEqual(t, m.text(), r.text(), "%s: the difference is gone, take it off the list (%s)", m.name, d.why)
			assert.Equal(t, d.model, m.text(), "%s: model, %s", m.name, d.why)
			assert.Equal(t, d.real, r.text(), "%s: real server, %s", m.name, d.why)
			continue
		}
		assert.Equal(t, r.text(), m.text(), "%s: real server (expected) and model (actual) differ", m.name)
	}
	require.Len(t, real, len(model))
	for name := range allowed {
		assert.True(t, seen[name], "a difference is listed for %q, which no call has", name)
	}
}

func runModel(ctx context.Context, t *testing.T) []answer {
	srv := s3test.New(s3test.Options{AccessKey: "sluice", SecretKey: "secret", Region: store.Region})
	defer srv.Close()
	endpoint, err := srv.ListenTCP()
	require.NoError(t, err)
	return run(ctx, t, endpoint, "sluice", "secret")
}

func runReal(ctx context.Context, t *testing.T) []answer {
	srv, err := store.Start(ctx, store.Config{Root: filepath.Join(t.TempDir(), "root")})
	require.NoError(t, err)
	defer func() { assert.NoError(t, srv.Stop(context.WithoutCancel(ctx))) }()
	return run(ctx, t, srv.Endpoint(), srv.AccessKey(), srv.SecretKey())
}

func run(ctx context.Context, t *testing.T, endpoint, accessKey, secretKey string) []answer {
	w := &wire{transport: &http.Transport{}}
	defer w.transport.CloseIdleConnections()
	s := &script{t: t, ctx: ctx, wire: w, c: s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint), Region: store.Region, UsePathStyle: true, HTTPClient: w, RetryMaxAttempts: 1,
		Credentials:                               credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
		RequestChecksumCalculation:                aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:                aws.ResponseChecksumValidationWhenRequired,
		DisableLogOutputChecksumValidationSkipped: true,
	})}
	s.objects()
	s.uploads()
	s.refusedCompletes()
	s.aborts()
	s.listings()
	return s.answers
}

// wire remembers what came back over HTTP, which the SDK's results do not tell.
type wire struct {
	transport *http.Transport
	status    int
	requests  int
}

func (w *wire) Do(req *http.Request) (*http.Response, error) {
	w.requests++
	resp, err := w.transport.RoundTrip(req)
	if err == nil {
		w.status = resp.StatusCode
	}
	return resp, err
}

// answer is what one call got: head is status and error code, facts the rest.
type answer struct{ name, want, head, facts string }

func (a answer) text() string { return strings.TrimSpace(a.head + " " + a.facts) }

// script runs calls one after the other against one server.
type script struct {
	t       *testing.T
	ctx     context.Context
	wire    *wire
	c       *s3.Client
	answers []answer
}

// do runs one call, of which S3's documentation says that it is answered with want.
func (s *script) do(name, want string, call func(ctx context.Context) (facts string, err error)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	defer cancel()
	s.wire.status, s.wire.requests = 0, 0
	facts, err := call(ctx)
	head := fmt.Sprint(s.wire.status)
	if err != nil {
		var coded interface{ ErrorCode() string }
		require.ErrorAs(s.t, err, &coded, name)
		head, facts = head+" "+coded.ErrorCode(), ""
	}
	require.Equal(s.t, 1, s.wire.requests, "%s: one call is one request", name)
	s.answers = append(s.answers, answer{name, want, head, facts})
}

// facts tells what an answer says about an object or a part; what it leaves out is left out.
func facts(size *int64, etag, crc *string, kind types.ChecksumType, meta map[string]string) string {
	out := []string{"etag=" + aws.ToString(etag)}
	if size != nil {
		out = append(out, fmt.Sprint("size=", *size))
	}
	if crc != nil {
		out = append(out, strings.TrimSpace("crc="+*crc+" "+string(kind)))
	}
	if token, ok := meta[tokenKey]; ok {
		out = append(out, "token="+token)
	}
	return strings.Join(out, " ")
}

// crcOf is the CRC-64/NVME of the bytes as S3 writes it, computed without the product.
func crcOf(data []byte) *string {
	sum := crc64.Checksum(data, crc64.MakeTable(0x9a6c9329ac4bc9b5))
	return aws.String(base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, sum)))
}
