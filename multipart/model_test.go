package multipart_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/multipart"
)

// saved is a durable checkpoint: the handle in its binary form, and the bytes the model says it stands for.
type saved struct {
	handle []byte
	bytes  []byte
	sealed bool
}

// machine drives one file through writes, checkpoints, crashes and commits, with a store that stalls, loses answers and
// lies, against a model that is a plain list of bytes.
type machine struct {
	store  *store
	blobs  *blobs
	budget *multipart.Budget
	size   int64
	u      *multipart.Upload

	content   []byte // what the file holds
	sealed    bool
	saves     []saved
	published []byte // what a commit has published, for good
	done      bool
	gate      chan struct{} // not nil: part uploads stall
	wait      time.Duration // of Capture.Store
}

func (m *machine) options() multipart.Options {
	return multipart.Options{PartSize: m.size, Budget: m.budget, Concurrency: 3, PersistWait: m.wait, Epoch: 1}
}

func (m *machine) start(t *rapid.T) {
	u, err := multipart.Start(m.store, target, token, m.options())
	require.NoError(t, err)
	m.u, m.content, m.sealed = u, nil, false
}

// calm ends stalls and faults.
func (m *machine) calm() {
	if m.gate != nil {
		close(m.gate)
		m.gate = nil
	}
	m.store.clearScript()
}

func (m *machine) stall(t *rapid.T) {
	if m.gate != nil {
		t.Skip("stalled already")
	}
	m.gate = make(chan struct{})
	op := rapid.SampledFrom([]string{"create", "part"}).Draw(t, "stalled call")
	m.store.script(rule{op: op, part: rapid.Int32Range(0, 3).Draw(t, "stalled part"), gate: m.gate})
}

func (m *machine) write(t *rapid.T) {
	if m.sealed || m.done {
		t.Skip("sealed")
	}
	p := rapid.SliceOfN(rapid.Byte(), 0, int(m.size*5/2)).Draw(t, "bytes")
	n, err := m.u.Write(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, len(p), n)
	m.content = append(m.content[:len(m.content):len(m.content)], p...)
}

// checkpoint captures, lets the writer go on, and stores.
func (m *machine) checkpoint(t *rapid.T) {
	if m.done {
		t.Skip("committed")
	}
	c := m.u.Capture()
	at, sealed := m.content, m.sealed
	if !m.sealed && rapid.Bool().Draw(t, "write before it is stored") {
		m.write(t)
	}
	if rapid.IntRange(0, 9).Draw(t, "barrier fails") == 0 {
		c.Release()
		return
	}
	h, err := c.Store(t.Context(), m.blobs)
	require.NoError(t, err)
	var sum int64
	for _, p := range h.Parts {
		sum += p.Size
	}
	for _, p := range h.Pieces {
		sum += p.Size
	}
	require.Equal(t, int64(len(at)), h.Offset)
	require.Equal(t, h.Offset, sum, "offset == parts + pieces")
	require.Equal(t, crcOf(at), h.CRC)
	b, err := h.MarshalBinary()
	require.NoError(t, err)
	m.saves = append(m.saves, saved{b, at, sealed})
}

// crash forgets the process and continues from the newest checkpoint, as a restore does.
func (m *machine) crash(t *rapid.T) {
	if m.done {
		t.Skip("committed")
	}
	m.u.Abandon()
	require.Zero(t, m.budget.Stats().Used, "a dead process holds nothing")
	m.calm()
	if len(m.saves) == 0 {
		m.start(t)
		return
	}
	m.restore(t, m.saves[len(m.saves)-1])
}

func (m *machine) restore(t *rapid.T, s saved) {
	var h multipart.Handle
	require.NoError(t, h.UnmarshalBinary(s.handle))
	u, err := multipart.Resume(t.Context(), m.store, h, m.blobs, m.options())
	require.NoError(t, err)
	m.u, m.content, m.sealed = u, s.bytes, s.sealed
	require.Equal(t, int64(len(m.content)), u.Offset())
	require.Equal(t, crcOf(m.content), u.Digest())
}

func (m *machine) seal(t *rapid.T) {
	if m.done {
		t.Skip("committed")
	}
	end := m.u.Seal
	if rapid.Bool().Draw(t, "spill") {
		end = m.u.Spill
	}
	require.NoError(t, end())
	m.sealed = true
}

// commit publishes what a durable, sealed checkpoint names, as a job does; now and then the store misbehaves, and now and
// then the process dies before it notes the success.
func (m *machine) commit(t *rapid.T) {
	if m.done || !m.sealed || len(m.saves) == 0 || !m.saves[len(m.saves)-1].sealed {
		t.Skip("not durable")
	}
	m.calm()
	fault := rapid.SampledFrom([]string{"none", "lost", "error", "lie", "blind", "crash"}).Draw(t, "fault")
	for _, op := range []string{"complete", "put"} {
		switch fault {
		case "lost":
			m.store.script(rule{op: op, times: 1, after: true, err: errInjected})
		case "error":
			m.store.script(rule{op: op, times: 1, err: errInjected})
		case "lie":
			m.store.script(rule{op: op, times: 1, lie: true})
		}
	}
	if fault == "blind" {
		m.store.script(rule{op: "head", times: 1, err: errInjected})
	}
	_, err := m.u.Commit(context.Background())
	m.store.clearScript()
	if err == nil {
		m.check(t)
		m.saves = m.saves[len(m.saves)-1:]
		if fault == "crash" {
			m.u.Abandon()
			m.restore(t, m.saves[0])
			return
		}
		m.done = true
		return
	}
	require.ErrorIs(t, err, multipart.ErrUnproven)
}

// check compares what is visible with the model.
func (m *machine) check(t *rapid.T) {
	got, ok := m.store.content(key)
	require.Equal(t, len(m.content) > 0, ok, "an empty file is not published, any other is")
	require.True(t, bytes.Equal(m.content, got), "%d bytes published, %d written", len(got), len(m.content))
	m.published = m.content
}

func (m *machine) invariants(t *rapid.T) {
	require.Equal(t, int64(len(m.content)), m.u.Offset())
	require.Equal(t, crcOf(m.content), m.u.Digest())
	require.Zero(t, m.store.aborts)
	if got, ok := m.store.content(key); ok {
		require.True(t, m.sealed, "nothing is visible before commit")
		require.True(t, bytes.Equal(m.content, got))
	} else {
		require.Empty(t, m.published, "what was published stays")
	}
}

// TestModel_WhateverHappens runs random histories. -rapid.checks sets how many.
func TestModel_WhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{
			store: newStore(), blobs: newBlobs(), budget: multipart.NewBudget(4 << 20),
			size: rapid.SampledFrom([]int64{1, 40, 300}).Draw(t, "part size"),
			wait: rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(t, "persist wait"),
		}
		if rapid.Bool().Draw(t, "store gives no checksum") {
			m.store.hideCRC()
		}
		m.start(t)
		t.Repeat(map[string]func(*rapid.T){
			"write":      m.write,
			"checkpoint": m.checkpoint,
			"crash":      m.crash,
			"seal":       m.seal,
			"commit":     m.commit,
			"stall":      m.stall,
			"calm":       func(*rapid.T) { m.calm() },
			"":           m.invariants,
		})
		m.calm()
		if !m.done { // every history can be brought to its end
			require.NoError(t, m.u.Seal())
			m.sealed = true
			_, err := m.u.Commit(context.Background())
			if err != nil {
				_, err = m.u.Commit(context.Background())
			}
			require.NoError(t, err)
			m.check(t)
		}
		m.u.Abandon()
		require.Zero(t, m.budget.Stats().Used, "all memory is back at the end")
		require.Zero(t, m.store.aborts)
	})
}
