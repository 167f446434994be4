package lab

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/retrymode"
)

// costRow is the goal that is no scenario: what adaptive mode adds to the permission of an attempt while nothing is refused. It is measured in real
// time, against standard mode in the same run; each figure is of three benchmarks.
func costRow(t *testing.T) Row {
	row := Row{Goal: Goal{Name: "no 503s, what the gate adds to an attempt", Retries: 3}, Rig: "3 benchmarks"}
	adaptive, standard := tokens(t, retrymode.Adaptive), tokens(t, retrymode.Standard)
	add := func(what string, most float64, decimals int, values []float64, standard float64) {
		f := Finding{Goal: row.Goal, Check: Check{What: what, Max: most, Decimals: decimals}}
		f.Median, f.Low, f.High = spreadOf(values)
		f.OK = f.Median <= most
		row.Findings = append(row.Findings, f)
		f.Median, f.Low, f.High = standard, standard, standard
		row.Standard = append(row.Standard, f)
	}
	var allocations []float64
	for _, goroutines := range []int{1, 8, 32, 256} {
		var times, base []float64
		for range 3 {
			s, a := benchmark(standard, goroutines), benchmark(adaptive, goroutines)
			base = append(base, micros(s))
			times = append(times, micros(a)-micros(s))
			allocations = append(allocations, float64(a.AllocsPerOp()-s.AllocsPerOp()))
		}
		slices.Sort(base)
		add(fmt.Sprintf("us more than standard, %d goroutines", goroutines), 0.7, 2, times, base[1])
	}
	add("allocations more than standard", 2, 0, allocations, 0)
	return row
}

// tokens takes a permission and gives it back, as one attempt that is served does.
func tokens(t *testing.T, mode retrymode.Mode) func() error {
	t.Helper()
	o := retrymode.DefaultOptions()
	o.Mode, o.MaxInFlight = mode, 1000
	r, err := retrymode.New(o)
	require.NoError(t, err)
	return func() error {
		release, err := r.GetAttemptToken(context.Background())
		if err != nil {
			return err
		}
		return release(nil)
	}
}

// benchmark runs attempts by so many goroutines.
func benchmark(attempt func() error, goroutines int) testing.BenchmarkResult {
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		if goroutines == 1 {
			for b.Loop() {
				if err := attempt(); err != nil {
					b.Fatal(err)
				}
			}
			return
		}
		b.SetParallelism(max(goroutines/runtime.GOMAXPROCS(0), 1))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := attempt(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func micros(r testing.BenchmarkResult) float64 { return float64(r.NsPerOp()) / 1000 }
