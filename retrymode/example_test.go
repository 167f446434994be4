package retrymode_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/retrymode"
)

// busy answers 503 to everything.
type busy struct{}

func (busy) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

func Example() {
	o := retrymode.DefaultOptions()
	o.Mode = retrymode.Standard
	o.MaxRetries = 1
	o.BaseDelay, o.ThrottleBaseDelay = time.Millisecond, time.Millisecond // so that the example does not wait
	r, err := retrymode.New(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := aws.Config{
		Region:      "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider("AK", "SK", ""),
		HTTPClient:  &http.Client{Transport: busy{}},
	}
	r.Apply(&cfg)
	client := s3.NewFromConfig(cfg)

	_, err = client.HeadObject(context.Background(), &s3.HeadObjectInput{Bucket: aws.String("bucket"), Key: aws.String("key")})
	fmt.Println("class:", retrymode.Classify(err))
	fmt.Println("attempts:", retrymode.AttemptsOf(err))
	fmt.Println("throttles:", r.Stats().Total.Throttles)
	// Output:
	// class: throttle
	// attempts: 2
	// throttles: 2
}

func ExampleOptions_Validate() {
	o := retrymode.DefaultOptions()
	o.MaxRetries = -1
	o.MaxInFlight = 0
	_, err := retrymode.New(o)
	fmt.Println(err)
	// Output:
	// s3.retry.max-num-retries: -1 is not between 0 and 1000000
	// attempts in flight: 0 is less than 1
}

func ExampleClassify() {
	commit := func(err error) string {
		switch {
		case err == nil:
			return "done, look to be sure"
		case retrymode.Classify(err) == retrymode.Ambiguous:
			return "look before asking again"
		case errors.Is(err, retrymode.ErrBreakerOpen):
			return "later"
		default:
			return "give up"
		}
	}
	fmt.Println(commit(&retrymode.AttemptError{
		Operation: "CompleteMultipartUpload", Attempts: 1, Class: retrymode.Ambiguous, Err: io.ErrUnexpectedEOF,
	}))
	// Output: look before asking again
}

func ExampleWithPriority() {
	// The PutObject of a commit record must not queue behind the parts of open files.
	ctx := retrymode.WithPriority(context.Background())
	_ = ctx // client.PutObject(ctx, ...)
}
