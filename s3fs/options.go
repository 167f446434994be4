package s3fs

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-go/sluice/config"
	"github.com/sluice-go/sluice/retrymode"
)

// Limits of S3 for one part of a multipart upload.
const (
	MinPartSize = 5 << 20 // every part but the last
	MaxPartSize = 5 << 30
)

// The keys of this package.
var (
	KeyEndpoint = config.String("s3.endpoint", "",
		"URL of the store, such as http://127.0.0.1:7070. Unset: Amazon S3, or what the AWS configuration chain says.",
		config.NoDefault[string](), config.WithCheck(checkEndpoint))
	KeyRegion = config.String("s3.region", "",
		"Region to sign for. Unset: from the AWS configuration chain; with s3.endpoint set and nothing in the chain us-east-1, which other stores accept.",
		config.NoDefault[string](), config.NotEmpty[string]())
	KeyPathStyle = config.Bool("s3.path-style-access", false,
		"Whether the bucket stands in the path of a request instead of its host name. Most stores other than Amazon's need it.",
		config.WithAliases[bool]("s3.path.style.access"))
	KeyAccessKey = config.SecretText("s3.access-key",
		"Access key id. Set together with s3.secret-key; both unset: the AWS credential chain.",
		config.WithAliases[config.Secret]("s3.access.key"), config.NotEmpty[config.Secret]())
	KeySecretKey = config.SecretText("s3.secret-key",
		"Secret access key.",
		config.WithAliases[config.Secret]("s3.secret.key"), config.NotEmpty[config.Secret]())
	KeySessionToken = config.SecretText("s3.session-token",
		"Session token of temporary credentials. It is never renewed: for jobs that outlive it use the AWS credential chain.",
		config.NotEmpty[config.Secret]())
	KeyMaxConnections = config.Int("s3.connection.max", 50,
		"Connections of the client, and so requests in flight; some of them are kept for the calls that publish files.",
		config.Range[int64](2, maxConnections))
	KeyConnectTimeout = config.Duration("s3.connection.timeout", time.Minute,
		"Longest time to make a connection, and again to make it secure.", config.AtLeast(time.Millisecond))
	KeySocketTimeout = config.Duration("s3.socket.timeout", time.Minute,
		"An attempt ends, and is retried, when no byte moves in either direction for this long. A slow transfer that advances never ends by it.",
		config.AtLeast(time.Millisecond))
	KeyMaxIdleTime = config.Duration("s3.connection.max-idle-time", time.Minute,
		"An idle connection is closed after this time.", config.AtLeast(time.Millisecond))
	KeyCallTimeout = config.Duration("s3.call.timeout", 0,
		"Longest time of one call with all its retries and waits; of a read until its answer begins. 0 ms: attempts x (20 s + s3.retry.max-backoff) + attempts x size / 64 KiB/s.")
	KeyChecksums = config.Bool("s3.checksum-validation.enabled", true,
		"Whether CRC64NVME checksums are sent with every upload and checked on every whole read. Off, for stores that refuse them: no x-amz-checksum header is sent, and a commit is proven by token, size and ETag.")
	KeyCloseTimeout = config.Duration("s3.close.timeout", time.Minute,
		"How long closing the file system waits for calls in flight before it cancels them.")
)

// maxConnections is where a larger number is a typing error rather than a wish.
const maxConnections = 65536

// Keys returns the options that this package reads, for a config.Registry.
// Opening a file system also needs those of retrymode.
func Keys() []config.Info {
	return []config.Info{
		KeyEndpoint.Info(), KeyRegion.Info(), KeyPathStyle.Info(), KeyAccessKey.Info(), KeySecretKey.Info(), KeySessionToken.Info(),
		KeyMaxConnections.Info(), KeyConnectTimeout.Info(), KeySocketTimeout.Info(), KeyMaxIdleTime.Info(),
		KeyCallTimeout.Info(), KeyChecksums.Info(), KeyCloseTimeout.Info(),
	}
}

// Settings are the values of the keys of this package and of retrymode. The
// zero value is not valid; start from DefaultSettings.
type Settings struct {
	Endpoint     string // "" = Amazon S3
	Region       string // "" = the AWS chain
	PathStyle    bool
	AccessKey    config.Secret // both or neither
	SecretKey    config.Secret
	SessionToken config.Secret

	MaxConnections int
	ConnectTimeout time.Duration
	SocketTimeout  time.Duration
	MaxIdleTime    time.Duration
	CallTimeout    time.Duration // 0 = derived, see FS.CallTimeout
	CloseTimeout   time.Duration

	Checksums bool

	// Retry is handed to retrymode.New. Its in-flight limits are set from
	// MaxConnections; what stands there is ignored.
	Retry retrymode.Options
}

// DefaultSettings returns the defaults of the keys.
func DefaultSettings() Settings {
	return Settings{
		MaxConnections: 50, ConnectTimeout: time.Minute, SocketTimeout: time.Minute, MaxIdleTime: time.Minute,
		CloseTimeout: time.Minute, Checksums: true, Retry: retrymode.DefaultOptions(),
	}
}

// FromConfig reads the keys of this package and of retrymode. The error joins
// every problem.
func FromConfig(c *config.Config) (Settings, error) {
	retry, retryErr := retrymode.FromConfig(c)
	s := Settings{
		Endpoint:       config.Get(c, KeyEndpoint),
		Region:         config.Get(c, KeyRegion),
		PathStyle:      config.Get(c, KeyPathStyle),
		AccessKey:      config.Get(c, KeyAccessKey),
		SecretKey:      config.Get(c, KeySecretKey),
		SessionToken:   config.Get(c, KeySessionToken),
		MaxConnections: int(config.Get(c, KeyMaxConnections)),
		ConnectTimeout: config.Get(c, KeyConnectTimeout),
		SocketTimeout:  config.Get(c, KeySocketTimeout),
		MaxIdleTime:    config.Get(c, KeyMaxIdleTime),
		CallTimeout:    config.Get(c, KeyCallTimeout),
		CloseTimeout:   config.Get(c, KeyCloseTimeout),
		Checksums:      config.Get(c, KeyChecksums),
		Retry:          retry,
	}
	return s, errors.Join(s.validateOwn(), retryErr)
}

// Validate returns every problem of s, joined, each named by its key.
func (s Settings) Validate() error {
	return errors.Join(s.validateOwn(), s.retryOptions().Validate())
}

// validateOwn is Validate without the retry options.
func (s Settings) validateOwn() error {
	var problems []error
	bad := func(key, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if s.Endpoint != "" {
		if err := checkEndpoint(s.Endpoint); err != nil {
			bad(KeyEndpoint.Name(), "%v", err)
		}
	}
	switch {
	case s.AccessKey != "" && s.SecretKey == "":
		bad(KeySecretKey.Name(), "missing, but %s is set: set both or neither", KeyAccessKey.Name())
	case s.AccessKey == "" && s.SecretKey != "":
		bad(KeyAccessKey.Name(), "missing, but %s is set: set both or neither", KeySecretKey.Name())
	case s.AccessKey == "" && s.SessionToken != "":
		bad(KeySessionToken.Name(), "set without %s and %s, which it belongs to", KeyAccessKey.Name(), KeySecretKey.Name())
	}
	between(bad, KeyMaxConnections.Name(), int64(s.MaxConnections), 2, maxConnections)
	for _, d := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		{KeyConnectTimeout.Name(), s.ConnectTimeout, time.Millisecond},
		{KeySocketTimeout.Name(), s.SocketTimeout, time.Millisecond},
		{KeyMaxIdleTime.Name(), s.MaxIdleTime, time.Millisecond},
		{KeyCallTimeout.Name(), s.CallTimeout, 0},
		{KeyCloseTimeout.Name(), s.CloseTimeout, 0},
	} {
		if d.value < d.least {
			bad(d.key, "%v is less than %v", d.value, d.least)
		}
	}
	return errors.Join(problems...)
}

func between(bad func(key, format string, args ...any), key string, value, low, high int64) {
	if value < low || value > high {
		bad(key, "%d is not between %d and %d", value, low, high)
	}
}

// checkEndpoint wants a bare URL: a path or a query would silently be lost, and
// a password in it would end up in every error.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("not a URL, want http://host:port or https://host")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the scheme is not http or https, want http://host:port or https://host")
	case u.User != nil:
		return errors.New("credentials do not belong into the URL, use s3.access-key and s3.secret-key")
	case u.Hostname() == "":
		return errors.New("the host is missing, want http://host:port or https://host")
	case u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return errors.New("a path, query or fragment is not allowed, want http://host:port or https://host")
	}
	return nil
}

// priorityConnections is how many of the connections only the calls that
// publish files may use: an eighth, at least one, at most eight.
func (s Settings) priorityConnections() int { return min(8, max(1, s.MaxConnections/8)) }

// retryOptions are the retry options with the in-flight limits that make
// attempts in flight never exceed the pool.
func (s Settings) retryOptions() retrymode.Options {
	o := s.Retry
	o.PriorityInFlight = s.priorityConnections()
	o.MaxInFlight = max(1, s.MaxConnections-o.PriorityInFlight)
	return o
}

// bodyLimit is how many answers may be read at a time. A body being read holds
// its connection but no in-flight slot; if bodies could take all connections, a
// commit would have to wait for somebody's slow read.
func (s Settings) bodyLimit() int { return max(1, s.MaxConnections-max(1, s.MaxConnections/4)) }

// callTimeout is the end-to-end deadline of a call that moves size bytes.
func (s Settings) callTimeout(size int64) time.Duration {
	if s.CallTimeout > 0 {
		return s.CallTimeout
	}
	const (
		perAttempt = 20 * time.Second
		slowLink   = 64 << 10 // bytes per second
	)
	attempts := float64(s.Retry.MaxRetries + 1)
	wire := float64(size) / slowLink * float64(time.Second)
	total := attempts * (float64(perAttempt+s.Retry.MaxBackoff) + wire)
	return time.Duration(min(total, math.MaxInt64/2))
}
