package sluicecmd

import (
	"encoding/json"
	"fmt"
	"os"
)

// Totals are the S3 client's own counts over all operations. Fields that a
// report does not have stay 0.
type Totals struct {
	Calls     int64 `json:"calls"`     // a repeated call counts once
	Attempts  int64 `json:"attempts"`  // HTTP requests
	Throttles int64 `json:"throttles"` // attempts answered with "slow down"
	Retries   int64 `json:"retries"`   // attempts that repeated an earlier one
}

// RunReport is the part of the report of `sluice run` that a driver reads.
type RunReport struct {
	Rows   int64  `json:"rows"`
	Totals Totals `json:"totals"`
	Stats  struct {
		Operations map[string]Totals `json:"operations"`
	} `json:"stats"`
}

// VerifyReport is the part of the report of `sluice verify` that a driver reads.
type VerifyReport struct {
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Proven bool   `json:"proven"`
	Why    string `json:"why"`
	Totals Totals `json:"totals"`

	MissingRows   Findings `json:"missing_rows"`
	DuplicateRows Findings `json:"duplicate_rows"`
	CorruptRows   Findings `json:"corrupt_rows"`
}

// Findings is how many there are of one kind.
type Findings struct {
	Total int64 `json:"total"`
}

// ReadReport reads a JSON report. Unknown fields are the business of others.
func ReadReport[T any](path string) (T, error) {
	var r T
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}
