package multipart_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/multipart"
)

// TestTranscripts runs the scripts in testdata/transcripts. Below each command stand all calls it caused, to the object
// store and to the checkpoint's blobs, in their order, and its result: together they are the protocol. -rewrite writes
// them anew; read the difference.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			s := &script{rig: newRig(t), handles: map[string]multipart.Handle{}}
			s.conc = 1 // one part at a time, so that the order is certain
			s.size = 100
			s.blobs.log = func(line string) {
				s.store.mu.Lock()
				defer s.store.mu.Unlock()
				s.store.log = append(s.store.log, line)
			}
			datadriven.RunTest(t, path, s.run)
			if s.u != nil {
				s.u.Abandon()
			}
		})
	})
}

type script struct {
	*rig
	u       *multipart.Upload
	handles map[string]multipart.Handle
	written int
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	result := s.command(t, d)
	synctest.Wait() // what happens in the background is part of the transcript
	var out strings.Builder
	for _, line := range s.store.takeLog() {
		out.WriteString(line + "\n")
	}
	return out.String() + "-> " + result + "\n"
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "start":
		s.u = s.start()
		return "offset 0"
	case "write":
		var n int
		d.ScanArgs(t, "bytes", &n)
		s.written++
		if _, err := s.u.Write(t.Context(), bytesOf(uint64(s.written), n)); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("offset %d, %d buffered", s.u.Offset(), s.u.Buffered())
	case "persist":
		h, err := s.u.Capture().Store(t.Context(), s.blobs)
		if err != nil {
			return err.Error()
		}
		s.handles[d.CmdArgs[0].Key] = h
		return describe(h)
	case "crash":
		s.u.Abandon()
		s.u = nil
		return fmt.Sprintf("%d bytes of memory held", s.budget.Stats().Used)
	case "resume":
		u, err := multipart.Resume(t.Context(), s.store, s.handles[d.CmdArgs[0].Key], s.blobs, s.options())
		if err != nil {
			return err.Error()
		}
		s.u = u
		return fmt.Sprintf("offset %d, %d buffered, strays %v", u.Offset(), u.Buffered(), u.Strays())
	case "seal":
		return outcome(s.u.Seal())
	case "spill":
		return outcome(s.u.Spill())
	case "commit":
		o, err := s.u.Commit(t.Context())
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d bytes proven", o.Size)
	case "fault":
		s.fault(t, d)
		return "ok"
	case "stall":
		s.wait = 0
		s.store.script(rule{op: d.CmdArgs[0].Key, gate: make(chan struct{})})
		return "ok"
	case "calm":
		s.store.clearScript()
		return "ok"
	case "expire":
		s.store.drop(s.u.UploadID())
		return "ok"
	}
	require.FailNow(t, "unknown command", d.Cmd)
	return ""
}

// fault scripts one wrong answer: lost (the work is done), refused (it is not), lie (success, and it is not).
func (s *script) fault(t *testing.T, d *datadriven.TestData) {
	r := rule{op: d.CmdArgs[0].Key, times: 1}
	switch kind := d.CmdArgs[1].Key; kind {
	case "lost":
		r.after, r.err = true, errInjected
	case "refused":
		r.err = errInjected
	case "lie":
		r.lie = true
	default:
		require.FailNow(t, "unknown fault", kind)
	}
	s.store.script(r)
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func describe(h multipart.Handle) string {
	var b strings.Builder
	fmt.Fprintf(&b, "handle upload=%q offset=%d sealed=%v", h.UploadID, h.Offset, h.Sealed)
	for _, p := range h.Parts {
		fmt.Fprintf(&b, "\n   part %d: %d bytes in the store", p.Number, p.Size)
	}
	for _, p := range h.Pieces {
		fmt.Fprintf(&b, "\n   part %d: %d bytes in %s", p.Number, p.Size, p.Ref)
	}
	return b.String()
}
