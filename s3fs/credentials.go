package s3fs

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// renewCredentials throws cached credentials away when the store refuses them as
// expired, so that the retry is signed with what the provider has now. The SDK
// itself goes by the time that the provider once named.
func renewCredentials(cache *aws.CredentialsCache) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		if _, ok := stack.Finalize.Get("Retry"); !ok {
			return nil
		}
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("sluice/s3fs.RenewCredentials", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleFinalize(ctx, in)
			if api, ok := errors.AsType[smithy.APIError](err); ok {
				switch api.ErrorCode() {
				case "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired":
					cache.Invalidate()
				}
			}
			return out, metadata, err
		}), "Retry", middleware.After)
	}
}
