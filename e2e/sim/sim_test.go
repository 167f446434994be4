package sim

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

var (
	seedsFlag = flag.Int("seeds", 0, "number of seeds to simulate (default 40, or 1 with -seed)")
	seedFlag  = flag.Uint64("seed", 0, "first seed to simulate (default 1)")
)

// TestMain hides the AWS configuration of whoever runs the tests.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	for _, name := range []string{
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_MAX_ATTEMPTS", "AWS_RETRY_MODE", "AWS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY",
	} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// simulate runs one seed and returns its world.
func simulate(t *testing.T, seed uint64, s *stats) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(newPlan(seed), s)
		if failure := w.run(); failure != "" {
			s.add("seeds that failed")
			t.Error(failure)
		}
	})
	return w
}

func TestSimulation(t *testing.T) {
	first, n := *seedFlag, *seedsFlag
	switch {
	case n == 0 && first == 0:
		first, n = 1, 40
	case n == 0:
		n = 1
	case first == 0:
		first = 1
	}
	s, began := newStats(), time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range n {
			seed := first + uint64(i)
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				if n == 1 {
					cryptotest.SetGlobalRandom(t, seed)
				} else {
					t.Parallel()
				}
				simulate(t, seed, s)
			})
		}
	})
	if *seedsFlag > 0 || testing.Verbose() {
		elapsed := time.Since(began)
		fmt.Print(s)
		fmt.Printf("simulation: seeds=%d failed=%d lost=%d doubled=%d corrupt=%d in %v, %.1f seeds/s\n", n, s.get("seeds that failed"),
			s.get("rows lost"), s.get("rows doubled"), s.get("rows corrupt"), elapsed.Round(time.Millisecond), float64(n)/elapsed.Seconds())
	}
}

func TestSimulation_ASeedReplaysToTheLetter(t *testing.T) {
	for _, seed := range []uint64{3, 7, 16, 20} {
		first := simulate(t, seed, newStats())
		second := simulate(t, seed, newStats())
		for i := range min(len(first.log), len(second.log)) {
			if first.log[i] != second.log[i] {
				t.Fatalf("seed %d: event %d is %q, and when replayed %q", seed, i, first.log[i], second.log[i])
			}
		}
		if len(first.log) != len(second.log) || first.store.Trace() != second.store.Trace() {
			t.Fatalf("seed %d: %d events, and when replayed %d, or another transcript", seed, len(first.log), len(second.log))
		}
	}
}
