package datagen_test

import (
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/e2e/datagen"
)

func benchmarkFields() map[string]datagen.Field {
	fields := map[string]datagen.Field{"kind=sequence": datagen.SequenceField("n", 1_000_000_000, 1<<60)}
	for _, length := range []int{16, 100, 1024} {
		fields[fmt.Sprintf("kind=random/length=%d", length)] = datagen.RandomField("line", length)
	}
	return fields
}

func BenchmarkAppend(b *testing.B) {
	for name, f := range benchmarkFields() {
		b.Run(name, func(b *testing.B) {
			g := generator(b, 1, f)
			buf := g.Append(nil, 0)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for row := int64(0); b.Loop(); row++ {
				buf = g.Append(buf[:0], row)
			}
		})
	}
}

func BenchmarkNumber(b *testing.B) {
	for name, f := range benchmarkFields() {
		b.Run(name, func(b *testing.B) {
			g := generator(b, 1, f)
			row := g.Append(nil, 12345)
			b.SetBytes(int64(len(row)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Number(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
