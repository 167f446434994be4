package s3test_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

func Example() {
	srv := s3test.New(s3test.Options{Buckets: []string{"data"}})
	defer srv.Close()

	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(srv.URL()), Region: "us-east-1", UsePathStyle: true,
		HTTPClient: srv.Client(), Credentials: aws.AnonymousCredentials{},
	})
	// The first PUT is throttled; the SDK tries again by itself.
	srv.Control(s3test.Match{Op: s3test.PutObject, Nth: 1}, s3test.Always(s3test.SlowDown()))
	_, err := client.PutObject(context.Background(), &s3.PutObjectInput{
		Bucket: aws.String("data"), Key: aws.String("hello"), Body: strings.NewReader("hello, world"),
	})
	fmt.Println("error:", err)
	fmt.Print(srv.Trace())
	// Output:
	// error: <nil>
	// PutObject data/hello size=12 -> 503 SlowDown
	// PutObject data/hello size=12 -> 200
}

func ExampleServer_Control() {
	srv := s3test.New(s3test.Options{Buckets: []string{"data"}})
	defer srv.Close()

	// The store does the work, and the answer gets lost.
	remove := srv.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "reports/"}, func(r s3test.Request) *s3test.Reply {
		if r.N == 1 {
			return s3test.ResetAfter()
		}
		return nil
	})
	defer remove()

	req, _ := http.NewRequest(http.MethodPut, srv.URL()+"/data/reports/1", strings.NewReader("x"))
	_, err := srv.Client().Do(req)
	fmt.Println("the client sees an error:", err != nil)
	_, there := srv.Object("data", "reports/1")
	fmt.Println("the object is there:", there)
	fmt.Print(srv.Trace())
	// Output:
	// the client sees an error: true
	// the object is there: true
	// PutObject data/reports/1 size=1 -> 200 (answer lost)
}
