package quota

import "github.com/sluice-go/sluice/e2e/testbed/internal/sluicecmd"

// Result is what became of one job.
type Result struct {
	Job
	Rows int64 `json:"rows"` // that it has to write

	ExitCode  int    `json:"exit_code"`  // of the writing process
	LastError string `json:"last_error"` // its last words, when it failed
	Write     Phase  `json:"write"`
	Read      *Phase `json:"read_back"` // nil: nothing to read, the job died
	Proven    bool   `json:"proven"`
	Why       string `json:"why"` // not proven
}

// died says whether the writing process failed.
func (r Result) died() bool { return r.ExitCode != 0 }

// Phase is writing or reading back.
type Phase struct {
	Seconds float64           `json:"seconds"`
	Bytes   int64             `json:"bytes"`
	Client  *sluicecmd.Totals `json:"client"` // nil: the process left no report
	Quota   Tally             `json:"quota"`
}

// perSecond is n over the time of the phase.
func (p Phase) perSecond(n int64) float64 {
	if p.Seconds <= 0 {
		return 0
	}
	return float64(n) / p.Seconds
}

// refusedShare is the share of the requests that the quota refused, by its own
// counts: in a lane that closes connections the client does not know that.
func (p Phase) refusedShare() float64 {
	if p.Quota.Requests == 0 {
		return 0
	}
	return float64(p.Quota.Refused) / float64(p.Quota.Requests)
}
