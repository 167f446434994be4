package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/sluice-go/sluice/e2e/lab"
)

func TestChartsAreDrawnFromAFileOfRates(t *testing.T) {
	dir := t.TempDir()
	rates := filepath.Join(dir, "rates.json")
	raw, err := json.Marshal([]lab.Rates{{File: "wall", Title: "A wall", Bin: 1, Series: []lab.Series{
		{Policy: "standard", OK: []float64{1, 2, 3}, Refused: []float64{0, 1, 0}, Allowed: []float64{0, 0, 0}},
		{Policy: "gate", OK: []float64{2, 2, 2}, Refused: []float64{0, 0, 0}, Allowed: []float64{0, 5, 0}},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(rates, raw, 0o600))
	for _, format := range []string{"svg", "png"} {
		require.NoError(t, drawCharts(rates, dir, format))
		picture, err := os.ReadFile(filepath.Join(dir, "wall."+format))
		require.NoError(t, err)
		assert.Greater(t, len(picture), 1000)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "wall.svg"))
	require.NoError(t, err)
	for _, text := range []string{"A wall", "standard", "gate", "calls done /s", "refused /s", "allowed /s", "seconds"} {
		assert.Contains(t, string(svg), text)
	}
	require.ErrorContains(t, drawCharts(rates, dir, "gif"), "want svg or png")
	require.ErrorIs(t, drawCharts(filepath.Join(dir, "nothing.json"), dir, "svg"), os.ErrNotExist)
}

func TestHalfAnHourIsDrawnInMinutes(t *testing.T) {
	r := lab.Rates{Bin: 15, Series: []lab.Series{{OK: make([]float64, 120)}}}
	assert.Equal(t, "minutes", chartUnit(r))
	assert.InDelta(t, 30, chartEnd(r), 1e-9)
	assert.InDelta(t, 0.125, points(r, r.Series[0].OK)[0].X, 1e-9)
}

func TestNoLineIsDrawnWhereThereIsNoLimit(t *testing.T) {
	y := func(values ...float64) (xys plotter.XYs) {
		for i, v := range values {
			xys = append(xys, plotter.XY{X: float64(i), Y: v})
		}
		return xys
	}
	all := y(0, 3, 4, 0, 0, 5, 0)
	assert.Equal(t, []plotter.XYs{all[1:3], all[5:6]}, withoutZeros(all))
	assert.Empty(t, withoutZeros(y(0, 0)))
	assert.Equal(t, []plotter.XYs{y(1, 2)}, withoutZeros(y(1, 2)))
}

func TestTicksAreAtRoundNumbers(t *testing.T) {
	for _, c := range []struct {
		n          roundTicks
		high, step float64
	}{{9, 180, 20}, {9, 30, 5}, {5, 1, 0.2}, {5, 400, 100}, {9, 9, 1}, {5, 630, 200}} {
		ticks := c.n.Ticks(0, c.high)
		assert.LessOrEqual(t, len(ticks), int(c.n)+1)
		assert.InDelta(t, c.step, ticks[1].Value-ticks[0].Value, 1e-9, "%v to %v", c.n, c.high)
	}
}
