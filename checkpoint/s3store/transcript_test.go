package s3store

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/s3fs/s3test"
)

// TestStore_Transcripts shows every S3 call of a run with checkpoints, in order. Each command prints its result and, below it, the calls it
// caused, without the prefix of the shard. Regenerate with: go test ./checkpoint/s3store -run Transcripts -rewrite
//
//	run a [retain=1]           a process begins and restores; the name is for later commands
//	checkpoint a               two rows, then a checkpoint
//	fault a put=chk- reply=reset-after    what happens to the next PUT of such a name: reset-before, reset-after, slow-down, lie
//	crash a                    the process is gone
//	objects                    what the store holds
func TestStore_Transcripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		bubble(t, func(t *testing.T, w *world) {
			w.unconditional = strings.HasSuffix(file, "501")
			jobs := map[string]*job{}
			datadriven.RunTest(t, file, func(t *testing.T, cmd *datadriven.TestData) string {
				w.srv.ResetTrace()
				result := "ok"
				if err := w.command(cmd, jobs); err != nil {
					result = err.Error()
				}
				if cmd.Cmd == "objects" {
					result = strings.Join(w.names(), "\n")
				}
				return bare(result + "\n" + indent(w.srv.Trace()))
			})
		})
	})
}

func (w *world) command(cmd *datadriven.TestData, jobs map[string]*job) error {
	name := ""
	if len(cmd.CmdArgs) > 0 {
		name = cmd.CmdArgs[0].Key
	}
	switch cmd.Cmd {
	case "run":
		retain := "1"
		cmd.MaybeScanArgs(w.t, "retain", &retain)
		n, err := strconv.Atoi(retain)
		require.NoError(w.t, err)
		j, id, err := w.start().run(n)
		jobs[name] = j
		if err == nil {
			err = fmt.Errorf("epoch %d, checkpoint %d", j.flow.Epoch(), id)
		}
		return err
	case "checkpoint":
		return jobs[name].checkpoints(1)
	case "fault":
		var part, reply string
		cmd.ScanArgs(w.t, "put", &part)
		cmd.ScanArgs(w.t, "reply", &reply)
		r, ok := map[string]*s3test.Reply{
			"reset-before": s3test.ResetBefore(), "reset-after": s3test.ResetAfter(), "slow-down": s3test.SlowDown(), "lie": s3test.DropEffect200(),
		}[reply]
		require.True(w.t, ok, reply)
		jobs[name].p.reply(s3test.PutObject, part, once(r))
	case "crash":
		jobs[name].p.die()
	case "objects":
	default:
		w.t.Fatalf("unknown command %s", cmd.Cmd)
	}
	return nil
}

var (
	checksum = regexp.MustCompile(` crc64nvme=\S+`)               // that of an epoch is random
	size     = regexp.MustCompile(`((?:chk|epoch)-\S+) size=\d+`) // of what package checkpoint encodes
	zeroes   = regexp.MustCompile(`0{10,}`)
)

// bare removes what repeats or is not decided here.
func bare(text string) string {
	text = strings.ReplaceAll(text, "b/"+dir, "")
	text = strings.ReplaceAll(text, strings.TrimSuffix("s3://b/"+dir, "/"), "SHARD")
	text = strings.ReplaceAll(text, dir, "SHARD/")
	return zeroes.ReplaceAllString(size.ReplaceAllString(checksum.ReplaceAllString(text, ""), "$1"), "0")
}

// indent returns the transcript with deletes that come together, and in any order, sorted.
func indent(trace string) string {
	if trace == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(trace), "\n")
	for i := 0; i < len(lines); i++ {
		n := i
		for n < len(lines) && strings.HasPrefix(lines[n], "DeleteObject") {
			n++
		}
		slices.Sort(lines[i:n])
		i = max(i, n-1)
	}
	return "  " + strings.Join(lines, "\n  ") + "\n"
}
