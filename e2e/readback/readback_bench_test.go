package readback_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/sluice-go/sluice/e2e/datagen"
	"github.com/sluice-go/sluice/e2e/readback"
	"github.com/stretchr/testify/require"
)

// BenchmarkCheckRows reads 64 MiB from memory: what the proof itself costs.
func BenchmarkCheckRows(b *testing.B) {
	for _, length := range []int{100, 1023} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("row=%d/workers=%d", length, workers), func(b *testing.B) {
				const files = 8
				g, err := datagen.NewGenerator(1, datagen.RandomField("line", length))
				require.NoError(b, err)
				rows := (8 << 20) / (length + 1)
				content, names := map[string][]byte{}, []string{}
				for f := range files {
					var text []byte
					for i := range rows {
						text = append(g.Append(text, int64(f*rows+i)), '\n')
					}
					names = append(names, fmt.Sprint(f))
					content[names[f]] = text
				}
				open := func(_ context.Context, _ int, file string) (io.ReadCloser, error) {
					return io.NopCloser(bytes.NewReader(content[file])), nil
				}
				e := expected(b, int64(files*rows))
				b.SetBytes(int64(files * rows * (length + 1)))
				for b.Loop() {
					f, err := readback.CheckRows(context.Background(), g, e, names, open, readback.Options{Workers: workers})
					if err != nil || f.Missing.Total != 0 || f.Passes != 1 {
						b.Fatal(err, f)
					}
				}
			})
		}
	}
}

func BenchmarkTally(b *testing.B) {
	l, err := readback.NewLedger(expected(b, 1<<40), 0, 0)
	require.NoError(b, err)
	for _, c := range []struct {
		name  string
		first int64
	}{{"row=with a bit", 0}, {"row=in the sums only", 1 << 30}} {
		b.Run(c.name, func(b *testing.B) {
			tally := l.File("a")
			for i := int64(0); b.Loop(); i++ {
				tally.Saw(c.first + i&(1<<26-1))
			}
		})
	}
}
