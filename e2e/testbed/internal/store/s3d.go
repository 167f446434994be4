package store

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// Subcommand is the hidden argument under which a binary becomes the server.
const Subcommand = "s3d"

// serverSpec is what the parent tells the child, as one line of JSON on the
// child's standard input: keys do not belong into an argument list that every
// user of the machine can read.
type serverSpec struct {
	Root        string `json:"root"`
	Sidecar     string `json:"sidecar"`
	Addr        string `json:"addr"`
	AccessKey   string `json:"access_key"`
	SecretKey   string `json:"secret_key"`
	Region      string `json:"region"`
	AccessLog   string `json:"access_log"`
	HealthPath  string `json:"health_path"`
	MaxRequests int    `json:"max_requests"`
}

// Main is the whole life of the server's process and returns its exit code. It
// reads its orders from standard input, serves, and ends when standard input
// ends: a parent that dies, however it dies, takes its server along.
func Main() int {
	// An interrupt typed at the terminal is for the parent, which then stops
	// the server in its own order: job first.
	signal.Ignore(os.Interrupt)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "s3d:", err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, orders io.Reader) error {
	in := bufio.NewReader(orders)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read orders: %w", err)
	}
	var spec serverSpec
	if err := json.Unmarshal(line, &spec); err != nil {
		return fmt.Errorf("read orders: %w", err)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Not joined: a read of standard input cannot be interrupted, and the
	// process ends with this function.
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()

	storer, opts, err := metadata(spec)
	if err != nil {
		return err
	}
	be, err := posix.New(spec.Root, storer, opts)
	if err != nil {
		return fmt.Errorf("open %s: %w", spec.Root, err)
	}
	return embedgw.RunVersityGW(ctx, be, &embedgw.Config{
		RootUserAccess:    spec.AccessKey,
		RootUserSecret:    spec.SecretKey,
		Region:            spec.Region,
		Ports:             []string{spec.Addr},
		MaxConnections:    10 * spec.MaxRequests, // above the request limit, so that overload is answered with SlowDown
		MaxRequests:       spec.MaxRequests,
		MultipartMaxParts: 10000, // S3's own limit
		Quiet:             true,
		KeepAlive:         true, // off by default in the server; without it every call pays a new connection
		HealthPath:        spec.HealthPath,
		AccessLog:         spec.AccessLog,
	})
}

// metadata chooses where the server keeps what a plain file cannot hold: in
// extended attributes, or, on a file system that has none, in files beside the
// root. The choice depends on the file system only, so a restart repeats it.
func metadata(spec serverSpec) (meta.MetadataStorer, posix.PosixOpts, error) {
	if (meta.XattrMeta{}).Test(spec.Root) == nil {
		return meta.XattrMeta{}, posix.PosixOpts{}, nil
	}
	if err := os.MkdirAll(spec.Sidecar, 0o755); err != nil {
		return nil, posix.PosixOpts{}, fmt.Errorf("no extended attributes in %s: %w", spec.Root, err)
	}
	storer, err := meta.NewSideCar(spec.Sidecar)
	if err != nil {
		return nil, posix.PosixOpts{}, fmt.Errorf("open %s: %w", spec.Sidecar, err)
	}
	return storer, posix.PosixOpts{SideCarDir: spec.Sidecar}, nil
}
