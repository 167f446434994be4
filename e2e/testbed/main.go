// Command sluice-testbed runs Sluice against a real S3 server that it brings
// along: the main job with its proof (`sluice-testbed run`, what `make run`
// calls), the kill campaign (`sluice-testbed crash`, `make crash`), the job
// behind a request quota (`sluice-testbed quota`, `make quota`), and the server
// alone (`sluice-testbed store`). `sluice-testbed charts` draws the lab's charts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/e2e/testbed/internal/mainjob"
	"github.com/sluice-go/sluice/e2e/testbed/internal/quota"
	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

// Exit codes.
const (
	exitOK        = 0
	exitNotProven = 1 // the reason is the last line of the output
	exitUsage     = 2 // a flag that does not parse
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == store.Subcommand {
		os.Exit(store.Main())
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The second interrupt ends this process at once, and with it its children.
	context.AfterFunc(ctx, stop)

	root := &cobra.Command{
		Use:           "sluice-testbed",
		Short:         "Run Sluice against a real S3 server that comes along",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), crashCommand(), quotaCommand(), storeCommand(), chartsCommand())
	switch err := root.ExecuteContext(ctx); {
	case err == nil:
		return exitOK
	case errors.Is(err, mainjob.ErrNotProven) || errors.Is(err, errCrash) || errors.Is(err, quota.ErrLost):
		return exitNotProven
	default:
		fmt.Fprintln(os.Stderr, "sluice-testbed:", err)
		return exitUsage
	}
}
