package multipart

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func extentOf(b *Budget, p []byte) extent {
	var e extent
	// Written in uneven chunks, as rows are.
	for len(p) > 0 {
		n := min(len(p), 777)
		spare := b.force(nil, e.missing(int64(n)))
		e.append(p[:n], spare)
		p = p[n:]
	}
	return e
}

func TestBody_ReadsWhatWasAppended(t *testing.T) {
	for _, n := range []int{1, 777, PageSize, PageSize + 1} {
		b := NewBudget(1 << 20)
		data := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
		e := extentOf(b, data)
		require.Equal(t, int64(n), e.size)
		e.hash()
		require.Equal(t, Checksum(data), e.crc)
		require.Len(t, e.pages, pagesFor(int64(n)))
		body := e.open()
		require.Equal(t, n, body.Len())
		require.NoError(t, iotest.TestReader(body, data))
		body.close()
		release(e.pages)
		require.Zero(t, b.Stats().Used)
	}
}

func TestBody_ReadAfterCloseFailsInsteadOfReadingAnotherFilesBytes(t *testing.T) {
	b := NewBudget(1 << 20)
	e := extentOf(b, []byte("mine"))
	body := e.open()
	release(e.pages)
	body.close()
	_, err := body.Read(make([]byte, 4))
	require.ErrorIs(t, err, errBodyClosed)
	body.close()
	require.Zero(t, b.Stats().Used, "closing twice gives back once")
}

func TestBody_SeekRefusesPlacesOutside(t *testing.T) {
	b := NewBudget(1 << 20)
	e := extentOf(b, []byte("0123456789"))
	body := e.open()
	defer release(e.pages)
	defer body.close()
	for _, c := range []struct {
		offset int64
		whence int
	}{{-1, io.SeekStart}, {11, io.SeekStart}, {1, io.SeekEnd}, {0, 9}} {
		_, err := body.Seek(c.offset, c.whence)
		require.ErrorIs(t, err, errBodySeek)
	}
	at, err := body.Seek(-3, io.SeekEnd)
	require.NoError(t, err)
	require.Equal(t, int64(7), at)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "789", string(rest))
}
