package nginx

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"text/template"
)

// Config says what to limit.
type Config struct {
	// Rate is the number of requests per second that pass, of all clients, buckets
	// and operations together. nginx is told in requests per minute, so it is
	// rounded to 1/60.
	Rate float64
	// Burst is the number of requests that pass at once above the rate. They are
	// not delayed; what comes on top of them is refused at once.
	Burst int
	// Upstream is the host and port of the S3 server.
	Upstream string
	// Dir is an existing directory for the configuration, the logs and nginx's
	// temporary files.
	Dir string
	// Path is the nginx executable. Default: what Find finds.
	Path string
}

func (c Config) validate() error {
	var errs []error
	if perMinute := c.perMinute(); perMinute < 1 || perMinute > 1e6 {
		errs = append(errs, fmt.Errorf("rate: %g per second is out of range", c.Rate))
	}
	if c.Burst < 0 {
		errs = append(errs, fmt.Errorf("burst: %d is negative", c.Burst))
	}
	for _, text := range []string{c.Upstream, c.Dir} {
		// They are written into a configuration file between quotes.
		if text == "" || strings.ContainsAny(text, "\"\\$;{}\r\n") {
			errs = append(errs, fmt.Errorf("%q cannot stand in a configuration of nginx", text))
		}
	}
	return errors.Join(errs...)
}

// perMinute is the rate as nginx takes it: a whole number.
func (c Config) perMinute() int64 {
	if math.IsNaN(c.Rate) || math.Abs(c.Rate) > 1e9 {
		return 0
	}
	return int64(math.Round(60 * c.Rate))
}

// accessLog is the log's file name in Config.Dir.
const accessLog = "access.log"

// render returns the configuration file of a server that listens on addr and
// answers health without counting it.
//
// One process, in the foreground: whoever ends it by its id has ended all of it.
// The signed Host header goes through unchanged. Bodies are streamed in both
// directions, or each part would be on disk twice. The zone's key is the port,
// which is the same for every request. A connection is not closed after some
// number of requests, nginx's default: a client could take that for the
// store's answer to too many of them.
func (c Config) render(addr, health string) (string, error) {
	if err := c.validate(); err != nil {
		return "", err
	}
	var b strings.Builder
	err := configTemplate.Execute(&b, struct {
		Config
		Addr, Health, Log, Format, Scratch string
		PerMinute                          int64
	}{c, addr, health, filepath.Join(c.Dir, accessLog), logFormat, filepath.Join(c.Dir, "scratch"), c.perMinute()})
	return b.String(), err
}

var configTemplate = template.Must(template.New("nginx.conf").Parse(`daemon off;
master_process off;
pid "{{.Scratch}}/pid";
error_log stderr warn;
events { worker_connections 4096; }
http {
  log_format sluice '{{.Format}}';
  access_log "{{.Log}}" sluice;
  client_body_temp_path "{{.Scratch}}/body";
  proxy_temp_path "{{.Scratch}}/proxy";
  fastcgi_temp_path "{{.Scratch}}/fastcgi";
  uwsgi_temp_path "{{.Scratch}}/uwsgi";
  scgi_temp_path "{{.Scratch}}/scgi";
  client_max_body_size 0;
  keepalive_requests 1000000000;
  limit_req_zone $server_port zone=quota:1m rate={{.PerMinute}}r/m;
  limit_req_status 503;
  limit_req_log_level info;
  upstream store { server {{.Upstream}}; keepalive 64; }
  server {
    listen {{.Addr}};
    error_page 503 = @slowdown;
    location = {{.Health}} { access_log off; return 204; }
    location / {
      limit_req zone=quota{{if .Burst}} burst={{.Burst}} nodelay{{end}};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_request_buffering off;
      proxy_buffering off;
      proxy_pass http://store;
    }
    location @slowdown {
      internal;
      default_type application/xml;
      add_header x-amz-request-id $request_id always;
      return 503 '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>$request_id</RequestId></Error>';
    }
  }
}
`))
