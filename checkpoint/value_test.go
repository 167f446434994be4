package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint"
)

func TestValue_IsWhatItWasAtTheCheckpoint(t *testing.T) {
	type position struct {
		Partition string
		Offset    int64
	}
	dir := t.TempDir()
	start := func() (*checkpoint.Value[position], *checkpoint.Coordinator, *checkpoint.DirStore) {
		v := checkpoint.NewValue("source", position{"p0", 7})
		s, err := checkpoint.OpenDir(dir, "job", "0-of-1")
		require.NoError(t, err)
		c, err := checkpoint.NewCoordinator(s, checkpoint.Options{}, v)
		require.NoError(t, err)
		_, err = c.Restore(t.Context())
		require.NoError(t, err)
		return v, c, s
	}
	v, c, s := start()
	require.Equal(t, position{"p0", 7}, v.Get(), "a fresh start keeps the initial value")
	v.Set(position{"p1", 8})
	_, err := c.Trigger(t.Context())
	require.NoError(t, err)
	v.Set(position{"p2", 9}) // behind the checkpoint
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, s.Close())

	v, c, s = start()
	require.Equal(t, position{"p1", 8}, v.Get())
	require.NoError(t, c.Close(t.Context()))
	require.NoError(t, s.Close())
}

func TestValue_AStateOfAnotherTypeIsAnError(t *testing.T) {
	err := checkpoint.NewValue("source", 0).Restore(t.Context(), checkpoint.Restored{ID: 1, State: []byte(`"text"`)})
	require.ErrorContains(t, err, "value source")
}
