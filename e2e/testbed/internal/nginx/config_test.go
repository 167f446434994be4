package nginx

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func valid() Config {
	return Config{Rate: 8, Burst: 12, Upstream: "127.0.0.1:7070", Dir: "/tmp/a dir"}
}

// lines returns the directives of a configuration without their indentation.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

func TestRender_SaysWhatWasAskedFor(t *testing.T) {
	text, err := valid().render("127.0.0.1:8081", "/health-x")
	require.NoError(t, err)
	got := lines(text)
	for _, want := range []string{
		"daemon off;",
		"master_process off;",
		`access_log "/tmp/a dir/access.log" sluice;`,
		`client_body_temp_path "/tmp/a dir/scratch/body";`,
		"limit_req_zone $server_port zone=quota:1m rate=480r/m;",
		"limit_req zone=quota burst=12 nodelay;",
		"limit_req_status 503;",
		"listen 127.0.0.1:8081;",
		"upstream store { server 127.0.0.1:7070; keepalive 64; }",
		"location = /health-x { access_log off; return 204; }",
		"proxy_set_header Host $http_host;",
		"client_max_body_size 0;",
	} {
		assert.Contains(t, got, want)
	}
	assert.Contains(t, text, "<Error><Code>SlowDown</Code>")
}

func TestRender_TheRateIsAWholeNumberPerMinute(t *testing.T) {
	for rate, want := range map[float64]string{8: "480r/m", 0.5: "30r/m", 1.0 / 3: "20r/m", 2.51: "151r/m", 3500: "210000r/m"} {
		c := valid()
		c.Rate = rate
		text, err := c.render("127.0.0.1:8081", "/health-x")
		require.NoError(t, err)
		assert.Contains(t, text, "zone=quota:1m rate="+want+";")
	}
}

func TestRender_NoBurst_IsLeftOut(t *testing.T) {
	c := valid()
	c.Burst = 0
	text, err := c.render("127.0.0.1:8081", "/health-x")
	require.NoError(t, err)
	assert.Contains(t, lines(text), "limit_req zone=quota;", "nginx takes no burst=0")
}

func TestRender_WhatCannotBeRendered_IsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no rate":            {func(c *Config) { c.Rate = 0 }, "rate: 0"},
		"rate below nginx's": {func(c *Config) { c.Rate = 0.001 }, "rate: 0.001"},
		"rate that is none":  {func(c *Config) { c.Rate = math.NaN() }, "rate: NaN"},
		"endless rate":       {func(c *Config) { c.Rate = math.Inf(1) }, "rate: +Inf"},
		"negative burst":     {func(c *Config) { c.Burst = -1 }, "burst: -1"},
		"no upstream":        {func(c *Config) { c.Upstream = "" }, `""`},
		"quote in a path":    {func(c *Config) { c.Dir = `/tmp/a"b` }, `"/tmp/a\"b"`},
		"variable in a path": {func(c *Config) { c.Dir = "/tmp/$host" }, `"/tmp/$host"`},
		"end of directive":   {func(c *Config) { c.Upstream = "a;b" }, `"a;b"`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := valid()
			c.change(&bad)
			_, err := bad.render("127.0.0.1:8081", "/health-x")
			assert.ErrorContains(t, err, c.says)
		})
	}
}
