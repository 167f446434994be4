package lab

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/retrymode/gate"
)

// sensitivitySeeds is how many runs a cell of the table of sensitivities is the median of.
const sensitivitySeeds = 5

// sensitivity is a figure of the table of sensitivities.
type sensitivity struct {
	name     string
	scenario Scenario
	retries  int
	format   string
	value    func(Result) float64
}

func sensitivities() []sensitivity {
	minute, many := WallRun(96, time.Minute), Clients(16, 32, 400)
	return []sensitivity{
		{"wall, 96 threads: goodput, %", minute, 10, "%.1f", goodput(400)},
		{"503s, %", minute, 10, "%.1f", refused},
		{"slowest, s", minute, 10, "%.1f", slowest},
		{"256 threads, 3 retries: failed per 10k", WallRun(256, time.Minute), 3, "%.0f", failed},
		{"16 clients: 503s, %", many, 10, "%.1f", refused},
		{"Jain", many, 10, "%.2f", Result.Jain},
		{"25/s, 256 writers: 503s, %", Quota25(), 10, "%.1f", refused},
		{"100 to 400: 90 % after, s", Steps(), 10, "%.0f", func(r Result) float64 { return min(r.Reaches(StepUp, 360).Seconds(), 60) }},
		{"2,000 per 5 s: goodput, %", FixedWindowRun(), 10, "%.1f", goodput(400)},
		{"random 5 %: goodput, %", RandomRun(0.05), 10, "%.0f", goodput(320)},
		{"outage of 10 s: back after, s", OutageRun(10*time.Second, 32), 10, "%.1f", func(r Result) float64 { return min(r.Reaches(OutageAt+10*time.Second, 288).Seconds(), 60) }},
		{"calls of 1.5 s: goodput, %", SlowCalls(), 10, "%.0f", goodput(60)},
		{"collapse: goodput, %", TimeoutCollapse(), 10, "%.0f", goodput(100)},
		{"32 of 32 at once: slowest, s", AllAtOnce(32), 3, "%.2f", slowest},
	}
}

// scaled returns the constants with one of them multiplied, and whether that changes it. Of a factor near 1 the distance from 1 is multiplied.
func scaled(p gate.Params, field int, by float64) (gate.Params, bool) {
	v := reflect.ValueOf(&p).Elem().Field(field)
	before := v.Interface()
	switch v.Kind() {
	case reflect.Float64:
		if f := v.Float(); f > 0.75 && f <= 2 {
			v.SetFloat(1 + (f-1)*by)
		} else {
			v.SetFloat(f * by)
		}
	default: // whole numbers and durations
		v.SetInt(max(int64(float64(v.Int())*by), 1))
	}
	return p, v.Interface() != before
}

// sensitivityMarkdown is the table of what each constant of the gate does when it is halved and when it is doubled.
func sensitivityMarkdown() string {
	var b strings.Builder
	b.WriteString("# The gate's constants\n\nWhat the lab's figures become when one constant of the law (`retrymode/gate`, `Params`) is halved or doubled and the others stay; of factors near 1 it is the distance from 1. ")
	fmt.Fprintf(&b, "Simulated; medians of %d seeds. Made by `make labdocs`; [how to read it](README.md).\n\n| constant |", sensitivitySeeds)
	columns := sensitivities()
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	p := GateDefaults()
	b.WriteString(sensitivityRow("all as they are", p, columns))
	for i := range reflect.TypeFor[gate.Params]().NumField() {
		name := reflect.TypeFor[gate.Params]().Field(i).Name
		for _, by := range []float64{0.5, 2} {
			if q, changed := scaled(p, i, by); changed {
				b.WriteString(sensitivityRow(name+" "+constant(reflect.ValueOf(q).Field(i)), q, columns))
			}
		}
	}
	return b.String()
}

// constant is the value of a constant as text.
func constant(v reflect.Value) string {
	if v.Kind() == reflect.Float64 {
		return fmt.Sprintf("%.4g", v.Float())
	}
	return fmt.Sprint(v)
}

// sensitivityRow simulates all columns with the given constants, as many at a time as there are processors.
func sensitivityRow(name string, p gate.Params, columns []sensitivity) string {
	cells := make([]string, len(columns))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var runs sync.WaitGroup
	for i, c := range columns {
		free <- struct{}{}
		runs.Go(func() {
			var values []float64
			for seed := range uint64(sensitivitySeeds) {
				values = append(values, c.value(Simulate(c.scenario, Gate(p, c.scenario.Scope), c.retries, seed+1)))
			}
			median, _, _ := spreadOf(values)
			cells[i] = fmt.Sprintf(c.format, median)
			<-free
		})
	}
	runs.Wait()
	return "| " + name + " | " + strings.Join(cells, " | ") + " |\n"
}

func TestScalingAConstantLeavesTheOthers(t *testing.T) {
	p := GateDefaults()
	kinds := reflect.TypeFor[gate.Params]()
	for i := range kinds.NumField() {
		q, changed := scaled(p, i, 2)
		assert.True(t, changed, kinds.Field(i).Name)
		for j := range kinds.NumField() {
			assert.Equal(t, i != j, reflect.DeepEqual(reflect.ValueOf(p).Field(j).Interface(), reflect.ValueOf(q).Field(j).Interface()), kinds.Field(j).Name)
		}
	}
}
