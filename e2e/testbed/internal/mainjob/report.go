package mainjob

import (
	"encoding/json"
	"fmt"
	"os"
)

// totals are the S3 client's own counts over all operations. Fields that a
// report does not have stay 0.
type totals struct {
	Calls     int64 `json:"calls"`     // a repeated call counts once
	Attempts  int64 `json:"attempts"`  // HTTP requests
	Throttles int64 `json:"throttles"` // attempts answered with "slow down"
	Retries   int64 `json:"retries"`   // attempts that repeated an earlier one
}

// runReport is the part of the report of `sluice run` that the driver reads.
type runReport struct {
	Rows   int64  `json:"rows"`
	Totals totals `json:"totals"`
	Stats  struct {
		Operations map[string]totals `json:"operations"`
	} `json:"stats"`
}

// verifyReport is the part of the report of `sluice verify` that the driver reads.
type verifyReport struct {
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Proven bool   `json:"proven"`
	Why    string `json:"why"`
	Totals totals `json:"totals"`
}

// readReport reads a JSON report. Unknown fields are the business of others.
func readReport[T any](path string) (T, error) {
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
