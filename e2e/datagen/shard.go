package datagen

import "github.com/sluice-go/sluice/checkpoint"

// Shard is one of several processes that share a job: of n shards, shard i makes the rows k*n + i.
type Shard = checkpoint.Shard
