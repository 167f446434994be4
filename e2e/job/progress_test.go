package job_test

import (
	"bytes"
	"log/slog"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/e2e/job"
	"github.com/sluice-go/sluice/s3fs"
	"github.com/sluice-go/sluice/s3fs/s3test"
)

// A store that closes connections instead of saying 503 shows in the progress lines and the report; with any other there is no word about it.
func TestJob_AttemptsThatGotNoAnswerAreToldApart(t *testing.T) {
	for _, cut := range []int{0, 2} {
		bubble(t, func(t *testing.T, w *world) {
			extra := map[string]string{"sink.rolling-policy.on-checkpoint": "true"}
			if cut > 0 {
				w.store.Control(s3test.Match{Op: s3test.PutObject, KeyPrefix: "out/part", First: cut}, s3test.Always(s3test.ResetBefore()))
			}
			var log bytes.Buffer
			j, err := job.New(t.Context(), w.config(extra), slog.New(slog.NewTextHandler(&log, nil)), s3fs.WithDialContext(w.store.DialContext))
			require.NoError(t, err)
			r, err := j.Run(t.Context())
			require.NoError(t, err)
			require.NoError(t, j.Close(t.Context()))
			require.EqualValues(t, cut, r.Totals.CutOff)
			require.EqualValues(t, cut, r.Stats.Total.CutOff)
			require.Zero(t, r.Totals.Throttles)
			require.Equal(t, cut > 0, regexp.MustCompile(`msg=progress .* throttled=0 .*cut_off=2\b`).Match(log.Bytes()))
			require.Equal(t, cut > 0, bytes.Contains(log.Bytes(), []byte("cut_off")))
			w.requireProven(3000, extra)
		})
	}
}
