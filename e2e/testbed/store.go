package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-go/sluice/e2e/testbed/internal/store"
)

func storeCommand() *cobra.Command {
	var cfg store.Config
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Run the embedded store alone until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			s, err := store.Start(ctx, cfg)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "s3.endpoint: %s\ns3.region: %s\ns3.path-style-access: true\ns3.access-key: %s\ns3.secret-key: %s\n",
				s.Endpoint(), store.Region, s.AccessKey(), s.SecretKey())
			select {
			case <-ctx.Done():
			case <-s.Done():
				return s.Err()
			}
			stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			return s.Stop(stopCtx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Root, "dir", "", "directory of buckets; each directory in it is a bucket")
	f.StringVar(&cfg.AccessLog, "access-log", "", "file for one line per request")
	f.IntVar(&cfg.MaxRequests, "max-requests", 1000, "requests in flight above which the answer is 503 SlowDown")
	_ = cmd.MarkFlagRequired("dir") // an error means that the flag above does not exist
	return cmd
}
