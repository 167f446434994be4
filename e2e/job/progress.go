package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/checkpoint"
	"github.com/sluice-go/sluice/retrymode"
)

// progress logs a line a second until ctx ends.
func (a *attempt) progress(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var lastRows, lastBytes int64
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			rows, size := a.rows.Load(), a.bytes.Load()
			seconds := now.Sub(last).Seconds()
			st := a.sink.Stats()
			calls := traffic(a.job.fs)
			line := []any{
				"rows", a.source.Position().Next,
				"rows_per_second", int64(float64(rows-lastRows) / seconds),
				"mb_per_second", int64(float64(size-lastBytes) / seconds / 1e6),
				"published_rows", st.Committed.Rows, "published_files", st.Committed.Files, "pending_files", st.PendingFiles,
				"buffers_mb", st.Budget.Used >> 20,
				"s3_calls", calls.Calls, "throttled", calls.Throttles, "retries", calls.Retries,
			}
			if calls.CutOff > 0 {
				line = append(line, "cut_off", calls.CutOff)
			}
			a.job.log.Info("progress", append(line, gates(a.job.fs.Stats().Gates)...)...)
			lastRows, lastBytes, last = rows, size, now
		}
	}
}

// gates says which gates hold calls up, and at which rate they let them pass.
func gates(all []retrymode.GateStats) (attrs []any) {
	for _, g := range all {
		if g.On {
			attrs = append(attrs, "gate "+g.Scope, fmt.Sprintf("%.1f/s, %d waiting", g.Rate, g.Waiting+g.Held))
		}
	}
	return attrs
}

// observed returns the checkpoint options with log lines for the course of each checkpoint.
func (a *attempt) observed() checkpoint.Options {
	o, log := a.job.points, a.job.log
	o.Observer = checkpoint.Observer{
		Begun: func(i checkpoint.Info) { log.Info("checkpoint begun", "id", int64(i.ID)) },
		Durable: func(i checkpoint.Info) {
			log.Info("checkpoint durable", "id", int64(i.ID), "barrier", i.Barrier, "store", i.Store, "save", i.Save, "blob_bytes", i.BlobBytes)
			if oldest := a.sink.Stats().OldestUpload; !oldest.IsZero() && time.Since(oldest) > a.job.warnAge {
				log.Warn("an upload is old: if the store's lifecycle rule removes it, its rows are lost", "created", oldest, "age", time.Since(oldest))
			}
		},
		Committed: func(i checkpoint.Info) {
			log.Info("checkpoint committed", "id", int64(i.ID), "commit", i.Commit, "total", i.Total, "published_rows", a.sink.Stats().Committed.Rows)
		},
		Failed: func(i checkpoint.Info) {
			a.noteLost(i.Err)
			if errors.Is(i.Err, checkpoint.ErrClosed) { // the job has ended: there is nothing left to hold
				log.Info("checkpoint not needed any more", "id", int64(i.ID))
				return
			}
			log.Warn("checkpoint failed", "id", int64(i.ID), "error", i.Err)
		},
		Cleanup: func(i checkpoint.Info) { log.Warn("checkpoint cleanup failed", "id", int64(i.ID), "error", i.Err) },
	}
	return o
}

// report adds what this attempt did. The writers have ended.
func (a *attempt) report(r *Report) {
	st := a.sink.Stats()
	r.Started = true
	r.Rows, r.Bytes, r.Files = st.Committed.Rows, st.Committed.Bytes, st.Committed.Files
	r.Staged = st.DurableRows - st.Committed.Rows
	r.Lost = a.source.Position().Next - st.DurableRows
	r.Checkpoints += a.coord.Stats().Committed
}
