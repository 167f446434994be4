package s3fs

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// sdkLogger hands what the SDK logs to a slog.Logger. The SDK is not asked to
// log requests, so no header or signature can come this way.
func sdkLogger(l *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, args ...any) {
		level := slog.LevelDebug
		if c == logging.Warn {
			level = slog.LevelWarn
		}
		l.Log(context.Background(), level, fmt.Sprintf(format, args...), "source", "aws-sdk") // the SDK gives no context
	})
}
