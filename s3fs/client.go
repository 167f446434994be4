package s3fs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	"github.com/sluice-go/sluice/retrymode"
)

// defaultRegion is what stores other than Amazon's call themselves, or accept.
const defaultRegion = "us-east-1"

// instanceRegionTimeout bounds the question for the region of an EC2 instance.
const instanceRegionTimeout = 3 * time.Second

// client is one SDK client with its pool, in-flight limit and retryer. File
// systems with equal settings share one.
type client struct {
	s3      *s3.Client
	retryer *retrymode.Retryer
	http    *http.Client
	bodies  chan struct{} // one per answer being read

	credentials aws.CredentialsProvider

	// unconditional is set once the store has said that it cannot do a conditional
	// PUT, so that it is not asked again.
	unconditional atomic.Bool
}

// newClient reads the AWS configuration chain and builds a client.
func newClient(ctx context.Context, s Settings, d deps) (*client, error) {
	retryer, err := retrymode.New(s.retryOptions())
	if err != nil {
		return nil, err
	}
	cfg, err := loadAWS(ctx, s, d.logger)
	if err != nil {
		return nil, err
	}
	c := &client{retryer: retryer, http: d.httpClient, bodies: make(chan struct{}, s.bodyLimit())}
	if c.http == nil {
		base, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			return nil, fmt.Errorf("the AWS configuration chain replaced the HTTP client by a %T", cfg.HTTPClient)
		}
		c.http = newHTTPClient(configureTransport(base.GetTransport(), s, d.dial))
	}
	if cache, ok := cfg.Credentials.(*aws.CredentialsCache); ok {
		cfg.APIOptions = append(cfg.APIOptions, renewCredentials(cache))
	}
	if cfg.Credentials != nil {
		cfg.Credentials = namedCredentials{cfg.Credentials}
	}
	c.credentials = cfg.Credentials
	retryer.Apply(&cfg)
	c.s3 = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.HTTPClient = c.http
		o.Retryer = retryer
		o.RetryMaxAttempts = 0 // any other value, AWS_MAX_ATTEMPTS for one, overrules the retryer
		o.UsePathStyle = s.PathStyle
		if s.Endpoint != "" {
			o.BaseEndpoint = aws.String(s.Endpoint)
		}
		// Checksums are ours, see adapter.go. Left to itself the SDK adds CRC32 to
		// uploads, as a trailer in an aws-chunked body, which other stores refuse.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.DisableLogOutputChecksumValidationSkipped = true
		o.APIOptions = append(o.APIOptions, unsignedBodies)
	})
	return c, nil
}

// close gives the idle connections back. Calls in flight are not touched.
func (c *client) close() { c.http.CloseIdleConnections() }

// unsignedBodies keeps the SDK from computing a SHA-256 over every byte that is
// uploaded over plain http. It costs more CPU than everything else an upload
// does; the CRC64NVME that goes with the body protects it instead. Small
// requests, such as the part list of a commit, stay signed with their body.
func unsignedBodies(stack *middleware.Stack) error {
	switch stack.ID() {
	case "UploadPart", "PutObject":
		return v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware(stack)
	}
	return nil
}

// loadAWS reads the AWS configuration chain: environment, shared files and,
// where they are needed, the instance's own services.
func loadAWS(ctx context.Context, s Settings, log *slog.Logger) (aws.Config, error) {
	load := func(ctx context.Context, more ...func(*awsconfig.LoadOptions) error) (aws.Config, error) {
		cfg, err := awsconfig.LoadDefaultConfig(ctx, append(awsOptions(s, log), more...)...)
		if err != nil {
			return aws.Config{}, fmt.Errorf("load the AWS configuration chain: %w", err)
		}
		return cfg, nil
	}
	cfg, err := load(ctx)
	if err != nil || cfg.Region != "" {
		return cfg, err
	}
	if s.Endpoint != "" {
		cfg.Region = defaultRegion
		return cfg, nil
	}
	asking, cancel := context.WithTimeout(ctx, instanceRegionTimeout)
	defer cancel()
	if instance, err := load(asking, awsconfig.WithEC2IMDSRegion()); err == nil && instance.Region != "" {
		return instance, nil
	}
	if ctx.Err() != nil {
		return aws.Config{}, context.Cause(ctx)
	}
	return aws.Config{}, ErrNoRegion
}

// ErrNoRegion is returned by Open when neither the configuration nor the AWS
// chain (environment, shared files, instance) names a region.
var ErrNoRegion = errors.New("no region: set " + KeyRegion.Name() + ", AWS_REGION or a region in the AWS shared configuration, or " +
	KeyEndpoint.Name() + " for a store that is not Amazon's")

func awsOptions(s Settings, log *slog.Logger) []func(*awsconfig.LoadOptions) error {
	options := []func(*awsconfig.LoadOptions) error{
		// A plain http.Client would make the loader fail under AWS_CA_BUNDLE.
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient()),
		awsconfig.WithLogger(sdkLogger(log)),
	}
	if s.Region != "" {
		options = append(options, awsconfig.WithRegion(s.Region))
	}
	if s.AccessKey != "" {
		options = append(options, awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(
			s.AccessKey.Reveal(), s.SecretKey.Reveal(), s.SessionToken.Reveal())))
	}
	return options
}

// deps are the dependencies that no configuration file can hold.
type deps struct {
	logger     *slog.Logger
	httpClient *http.Client
	dial       dialFunc
	dialSet    bool // dial is not the default
}

// Option is a dependency of a file system.
type Option func(*deps)

// WithLogger has the file system log to l: what the SDK has to say, and
// decisions that an operator should know of. Without it nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(d *deps) { d.logger = l } }

// WithHTTPClient sends all requests through c, for tests and for special
// transports. The pool size and the connection, socket and idle timeouts are
// then those of c, and the keys for them have no effect. A client that is
// handed in is never shared between file systems by Clients.
func WithHTTPClient(c *http.Client) Option { return func(d *deps) { d.httpClient = c } }

// WithDialContext makes connections by dial instead of a net.Dialer, for
// example over an in-memory network; pool and timeouts work as configured. A
// file system with its own dial function is never shared by Clients.
func WithDialContext(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(d *deps) { d.dial, d.dialSet = dial, true }
}

func newDeps(opts []Option) deps {
	d := deps{
		logger: slog.New(slog.DiscardHandler),
		dial:   (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
	}
	for _, o := range opts {
		o(&d)
	}
	return d
}
