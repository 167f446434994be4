package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sluice-go/sluice/e2e/lab"
)

func chartsCommand() *cobra.Command {
	var rates, dir, format string
	cmd := &cobra.Command{
		Use:   "charts",
		Short: "Draw the lab's rates over time",
		Long: `Draws one picture for each scenario in the file of rates that the lab has written (go test ./e2e/lab -run TestDocs): calls
done, attempts refused and the rate that the limiter allowed, with a line for each policy.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return drawCharts(rates, dir, format)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&rates, "rates", "rates.json", "the file of rates")
	f.StringVar(&dir, "out", ".", "where to put the pictures")
	f.StringVar(&format, "format", "svg", "svg or png")
	return cmd
}

func drawCharts(rates, dir, format string) error {
	raw, err := os.ReadFile(rates)
	if err != nil {
		return err
	}
	var all []lab.Rates
	if err := json.Unmarshal(raw, &all); err != nil {
		return fmt.Errorf("%s: %w", rates, err)
	}
	for _, r := range all {
		path := filepath.Join(dir, r.File+"."+format)
		if err := drawChart(r, path, format); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// The size of a picture. The height is that of all panels.
const (
	chartWidth  = 8 * vg.Inch
	chartHeight = 6 * vg.Inch
)

// drawChart writes one picture.
func drawChart(r lab.Rates, path, format string) error {
	panels, err := chartPanels(r)
	if err != nil {
		return err
	}
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "svg":
		canvas = vgsvg.New(chartWidth, chartHeight)
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(chartWidth, chartHeight)}
	default:
		return fmt.Errorf("unknown format %q, want svg or png", format)
	}
	area := draw.New(canvas)
	area.SetColor(color.White)
	area.Fill(area.Rectangle.Path())
	area = draw.Crop(area, vg.Points(4), -vg.Points(14), vg.Points(4), -vg.Points(4))
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: vg.Points(6)}
	rows := make([][]*plot.Plot, len(panels))
	for i, p := range panels {
		rows[i] = []*plot.Plot{p}
	}
	for i, c := range plot.Align(rows, tiles, area) {
		panels[i].Draw(c[0])
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}

// colors of the policies, in their order: they differ in lightness as well, for those who do not see colors and for printers.
func colors() []color.Color {
	return []color.Color{
		color.RGBA{R: 0xE6, G: 0x9F, B: 0x00, A: 0xFF}, color.RGBA{R: 0xB0, G: 0x30, B: 0x60, A: 0xFF}, color.RGBA{R: 0x00, G: 0x55, B: 0xA4, A: 0xFF},
	}
}

// chartPanels are the pictures of one chart, from top to bottom.
func chartPanels(r lab.Rates) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	for i, panel := range []struct {
		label  string
		values func(lab.Series) []float64
		gaps   bool // a zero is no value
	}{
		{"calls done /s", func(s lab.Series) []float64 { return s.OK }, false},
		{"refused /s", func(s lab.Series) []float64 { return s.Refused }, false},
		{"allowed /s", func(s lab.Series) []float64 { return s.Allowed }, true},
	} {
		p := plot.New()
		p.Y.Label.Text = panel.label
		p.Y.Min = 0
		p.X.Min, p.X.Max = 0, chartEnd(r)
		p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks(9), roundTicks(5)
		p.Add(plotter.NewGrid())
		for n, s := range r.Series {
			if err := addSeries(p, s.Policy, points(r, panel.values(s)), colors()[n%len(colors())], panel.gaps, i == 0); err != nil {
				return nil, err
			}
		}
		panels = append(panels, p)
	}
	top, bottom := panels[0], panels[len(panels)-1]
	top.Title.Text = r.Title
	top.Title.Padding = vg.Points(4)
	top.Legend.Left, top.Legend.XOffs = true, vg.Points(8)
	top.Legend.ThumbnailWidth = vg.Points(24)
	top.Y.Max *= 1.6 // room for the legend
	top.Legend.Top = true
	bottom.X.Label.Text = chartUnit(r)
	return panels, nil
}

// addSeries adds the line of one policy.
func addSeries(p *plot.Plot, policy string, xys plotter.XYs, c color.Color, gaps, named bool) error {
	pieces := []plotter.XYs{xys}
	if gaps {
		pieces = withoutZeros(xys)
	}
	for i, piece := range pieces {
		line, err := plotter.NewLine(piece)
		if err != nil {
			return err
		}
		line.Color, line.Width = c, vg.Points(1.2)
		p.Add(line)
		if named && i == 0 {
			p.Legend.Add(policy, line)
		}
	}
	return nil
}

// roundTicks marks an axis at round numbers: so many of them at most.
type roundTicks int

// Ticks implements plot.Ticker.
func (n roundTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	step := math.Pow(10, math.Floor(math.Log10(max(high-low, 1e-9)/float64(n))))
	for _, round := range []float64{2, 2.5, 2} { // 1, 2, 5, 10 times a power of ten
		if (high-low)/step > float64(n) {
			step *= round
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 6, 64)})
	}
	return ticks
}

// longChart is from how many seconds on a chart counts minutes.
const longChart = 600

func chartEnd(r lab.Rates) float64 {
	end := 0.0
	for _, s := range r.Series {
		end = max(end, float64(len(s.OK))*r.Bin)
	}
	return end / chartScale(end)
}

func chartScale(end float64) float64 {
	if end >= longChart {
		return 60
	}
	return 1
}

func chartUnit(r lab.Rates) string {
	if len(r.Series) > 0 && float64(len(r.Series[0].OK))*r.Bin >= longChart {
		return "minutes"
	}
	return "seconds"
}

// points puts each value in the middle of its bin.
func points(r lab.Rates, values []float64) plotter.XYs {
	scale := chartScale(float64(len(values)) * r.Bin)
	xys := make(plotter.XYs, len(values))
	for i, v := range values {
		xys[i] = plotter.XY{X: (float64(i) + 0.5) * r.Bin / scale, Y: v}
	}
	return xys
}

// withoutZeros is the stretches without a zero.
func withoutZeros(xys plotter.XYs) (pieces []plotter.XYs) {
	var piece plotter.XYs
	for _, xy := range xys {
		if xy.Y > 0 {
			piece = append(piece, xy)
			continue
		}
		if len(piece) > 0 {
			pieces = append(pieces, piece)
		}
		piece = nil
	}
	if len(piece) > 0 {
		pieces = append(pieces, piece)
	}
	return pieces
}
