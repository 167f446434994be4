package store_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// An access key that this server does not know is answered with 404, and a HEAD has no body that would say why. So the check of the
// bucket at the start of a job asks again by a listing; its tests script these two answers.
func TestStore_AnUnknownAccessKeyIs404AndOnlyAListingSaysWhy(t *testing.T) {
	_, client := start(t, store.Config{})
	stranger := func(o *s3.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider("stranger", "secret", "")
	}

	_, err := client.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String(bucket)}, stranger)
	var answer *awshttp.ResponseError
	require.ErrorAs(t, err, &answer)
	require.Equal(t, http.StatusNotFound, answer.HTTPStatusCode())

	_, err = client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)}, stranger)
	var named smithy.APIError
	require.ErrorAs(t, err, &named)
	require.Equal(t, "XAdminUserNotFound", named.ErrorCode())
}
