package sink

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
)

// SweepReport is what a sweep found and did.
type SweepReport struct {
	Path      string  `json:"path"`
	Job       string  `json:"job"`
	Shard     string  `json:"shard"`
	DryRun    bool    `json:"dry_run"`
	OlderThan float64 `json:"older_than_seconds"`

	WithoutCheckpoints bool            `json:"without_checkpoints"`
	NewestEpoch        int64           `json:"newest_epoch"`
	Run                string          `json:"run"`         // what is known about a live run
	Checkpoints        []checkpoint.ID `json:"checkpoints"` // retained ones that were read
	Savepoints         int             `json:"savepoints"`  // checkpoints read in the directories of savepoints

	Uploads []SweptUpload `json:"uploads"`

	Aborted SweepTotals `json:"aborted"` // with DryRun: would be
	Kept    SweepTotals `json:"kept"`
	Failed  SweepTotals `json:"failed"`
	Gone    SweepTotals `json:"gone"` // ended by somebody else meanwhile
}

// SweepTotals adds uploads up.
type SweepTotals struct {
	Uploads int   `json:"uploads"`
	Parts   int   `json:"parts"`
	Bytes   int64 `json:"bytes"`
	// Unmeasured counts uploads whose parts could not be listed: they are in Uploads only.
	Unmeasured int `json:"unmeasured,omitempty"`
}

// SweepOutcome says what became of an upload.
type SweepOutcome string

// The outcomes.
const (
	OutcomeKept    SweepOutcome = "kept"
	OutcomePlanned SweepOutcome = "would abort" // of a dry run
	OutcomeAborted SweepOutcome = "aborted"
	OutcomeFailed  SweepOutcome = "failed" // the abort was refused, unanswered or not begun
	OutcomeGone    SweepOutcome = "gone"   // no longer there when its parts were counted
)

// SweptUpload is one upload in a report.
type SweptUpload struct {
	Key       string       `json:"key"`
	UploadID  string       `json:"upload_id"`
	Epoch     int64        `json:"epoch"`
	Initiated time.Time    `json:"initiated"`
	Age       float64      `json:"age_seconds"`
	Parts     int          `json:"parts"`
	Bytes     int64        `json:"bytes"`
	Outcome   SweepOutcome `json:"outcome"`
	Reason    SweepReason  `json:"reason"`
	Why       string       `json:"why"`
	// Unmeasured says why Parts and Bytes are not known.
	Unmeasured string `json:"unmeasured,omitempty"`
	Error      string `json:"error,omitempty"` // of the abort
}

// What a report says about the run when there is nothing more to say.
const (
	runNotAsked = "not asked: no upload depends on it"
	runNone     = "none is live"
)

func runText(live bool, holder string, err error) string {
	switch {
	case err != nil:
		return "taken for live: " + err.Error()
	case live:
		return "live: " + holder
	}
	return runNone
}

func newSweptUpload(d SweepDecision, now time.Time) SweptUpload {
	u := SweptUpload{
		Key: d.Upload.Path.Key, UploadID: d.Upload.UploadID, Epoch: d.Epoch, Initiated: d.Upload.Initiated,
		Age: now.Sub(d.Upload.Initiated).Seconds(), Outcome: OutcomeKept, Reason: d.Reason, Why: d.Why(),
	}
	if d.Abort {
		u.Outcome = OutcomePlanned
	}
	return u
}

// addUp computes the totals from the outcomes.
func (r *SweepReport) addUp() {
	for _, u := range r.Uploads {
		t := &r.Kept
		switch u.Outcome {
		case OutcomeAborted, OutcomePlanned:
			t = &r.Aborted
		case OutcomeFailed:
			t = &r.Failed
		case OutcomeGone:
			t = &r.Gone
		}
		t.Uploads++
		t.Parts += u.Parts
		t.Bytes += u.Bytes
		if u.Unmeasured != "" {
			t.Unmeasured++
		}
	}
}

func (t SweepTotals) String() string {
	text := fmt.Sprintf("%d uploads, %d parts, %d bytes", t.Uploads, t.Parts, t.Bytes)
	if t.Unmeasured > 0 {
		text += fmt.Sprintf(" and those of %d uploads that could not be listed", t.Unmeasured)
	}
	return text
}

// WriteText writes the report for people: a line for each upload, then the totals.
func (r SweepReport) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "sweep of %s, job %s, shard %s\n", r.Path, r.Job, r.Shard)
	if r.WithoutCheckpoints {
		fmt.Fprintf(&b, "without checkpoints; run: %s; %d savepoint manifests read\n", r.Run, r.Savepoints)
	} else {
		fmt.Fprintf(&b, "newest epoch %d; run: %s; %d retained checkpoints and %d savepoint manifests read\n",
			r.NewestEpoch, r.Run, len(r.Checkpoints), r.Savepoints)
	}
	if len(r.Uploads) > 0 {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "OUTCOME\tKEY\tUPLOAD\tAGE\tPARTS\tBYTES\tWHY")
		for _, u := range r.Uploads {
			parts, size := fmt.Sprint(u.Parts), fmt.Sprint(u.Bytes)
			if u.Unmeasured != "" {
				parts, size = "?", "?"
			}
			age := time.Duration(u.Age * float64(time.Second)).Round(time.Second)
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Outcome, u.Key, u.UploadID, age, parts, size, u.Why)
		}
		_ = t.Flush() // into memory
	}
	for _, u := range r.Uploads {
		if u.Unmeasured != "" {
			fmt.Fprintf(&b, "not measured: %s\n", u.Unmeasured)
		}
	}
	verb := "aborted"
	if r.DryRun {
		verb = "would abort"
	}
	fmt.Fprintf(&b, "%s: %s\nkept: %s\n", verb, r.Aborted, r.Kept)
	if r.Gone.Uploads > 0 {
		fmt.Fprintf(&b, "ended by others meanwhile: %s\n", r.Gone)
	}
	if r.Failed.Uploads > 0 {
		fmt.Fprintf(&b, "not aborted: %s\n", r.Failed)
	}
	_, err := w.Write(b.Bytes())
	return err
}
