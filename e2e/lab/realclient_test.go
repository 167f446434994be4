package lab

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/retrymode"
)

// ours are the clients with this project's retries.
func ours(policy string) (retrymode.Options, bool) {
	o := retrymode.DefaultOptions()
	switch policy {
	case onStandard:
		o.Mode = retrymode.Standard
	case onGate:
	case "sdk":
		o.Limiter = retrymode.LimiterSDK
	default:
		return o, false
	}
	return o, true
}

// noSlotLimits is so many in-flight slots that attempts never wait for one.
const noSlotLimits = 4096

// realAPI is one S3 client and its retryer.
type realAPI struct {
	s3      *s3.Client
	retryer *retrymode.Retryer // nil = the SDK's own
}

// target is the object that a call names.
type target struct{ bucket, key *string }

// targets are the objects of a scenario's keys: prefixes of one bucket, or buckets where these are what the scenario is about.
func targets(s Scenario) []target {
	var all []target
	for i := range max(len(s.Workload.Shares), 1) {
		bucket := "bucket"
		if s.Name == Isolation().Name {
			bucket = fmt.Sprintf("bucket-%d", i)
		}
		all = append(all, target{aws.String(bucket), aws.String(fmt.Sprintf("p%d/object", i))})
	}
	return all
}

// newRealAPI makes one client. Policies are those of ours and of sdkRetryer.
func newRealAPI(t *testing.T, r *rig, client int, policy string, retries int, seed uint64) *realAPI {
	cfg := aws.Config{
		Region:                     "us-east-1",
		BaseEndpoint:               aws.String("https://store.example"),
		Credentials:                credentials.NewStaticCredentialsProvider("AK", "SK", ""),
		HTTPClient:                 &http.Client{Transport: realWire{r}},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	api := &realAPI{}
	if o, ok := ours(policy); ok {
		o.MaxRetries, o.MaxInFlight = retries, noSlotLimits
		if r.s.Scope == PerKey {
			o.Scope = retrymode.ScopePrefix
		}
		retryer, err := retrymode.New(o, retrymode.WithRandom(rand.NewPCG(seed, uint64(client))))
		require.NoError(t, err)
		retryer.Apply(&cfg)
		api.retryer = retryer
	} else {
		retryer := sdkRetryer(policy, retries)
		require.NotNil(t, retryer, policy)
		cfg.Retryer = func() aws.Retryer { return retryer }
	}
	api.s3 = s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	return api
}

// send makes a call: a part is uploaded where the workload has bytes, an object read where it has none. The bytes themselves stay at home.
func (a *realAPI) send(ctx context.Context, to target, upload bool) error {
	if upload {
		_, err := a.s3.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: to.bucket, Key: to.key, UploadId: uploadID, PartNumber: aws.Int32(1), Body: bytes.NewReader(tinyBody),
		})
		return err
	}
	out, err := a.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: to.bucket, Key: to.key})
	if err != nil {
		return err
	}
	return out.Body.Close()
}

var (
	uploadID = aws.String("upload")
	tinyBody = []byte("part")
)

// limiter is the number of calls that wait for the limiter and the rate of the slowest gate, 0 = unlimited or not known.
func (a *realAPI) limiter() (waiting int, rate float64) {
	if a.retryer == nil {
		return 0, 0
	}
	stats := a.retryer.Stats()
	for _, g := range stats.Gates {
		if g.On && (rate == 0 || g.Rate < rate) {
			rate = g.Rate
		}
	}
	return stats.WaitingLimiter, rate
}
