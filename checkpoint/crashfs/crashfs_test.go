package crashfs_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/checkpoint/crashfs"
)

// write makes a file with some content, synced or not.
func write(t *testing.T, p *crashfs.Process, path, text string, sync bool) {
	t.Helper()
	f, err := p.Create(path)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	if sync {
		require.NoError(t, f.Sync())
	}
	require.NoError(t, f.Close())
}

// read returns what is in a file, or "absent".
func read(t *testing.T, d *crashfs.Disk, path string) string {
	t.Helper()
	f, err := d.Process().Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "absent"
	}
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	return string(b)
}

func TestCrash_KeepsContentAndNamesEachIfTheyWereSynced(t *testing.T) {
	for name, c := range map[string]struct {
		content, names bool
		want           string
	}{
		"both":    {true, true, "text"},
		"name":    {false, true, ""},
		"content": {true, false, "absent"},
		"none":    {false, false, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			d := crashfs.New("dir")
			p := d.Process()
			write(t, p, "dir/a", "text", c.content)
			if c.names {
				require.NoError(t, p.SyncDir("dir"))
			}
			require.Equal(t, "text", read(t, d, "dir/a"))
			if c.want != "absent" {
				b, err := d.ReadDurable("dir/a")
				require.NoError(t, err)
				require.Equal(t, c.want, string(b))
			}
			d.Crash(nil)
			if c.want == "" {
				f, err := d.Process().Open("dir/a")
				require.NoError(t, err)
				size, err := f.Size()
				require.NoError(t, err)
				require.Zero(t, size)
				return
			}
			require.Equal(t, c.want, read(t, d, "dir/a"))
		})
	}
}

func TestCrash_ARemovalThatWasNotSyncedIsUndone(t *testing.T) {
	d := crashfs.New("dir")
	p := d.Process()
	write(t, p, "dir/a", "text", true)
	require.NoError(t, p.SyncDir("dir"))
	require.NoError(t, p.Rename("dir/a", "dir/b"))
	require.Equal(t, []string{"dir/b"}, d.Paths())
	require.Equal(t, []string{"dir/a"}, d.Durable())
	d.Crash(nil)
	require.Equal(t, []string{"dir/a"}, d.Paths())
}

func TestCrash_WithARandomSourceKeepsAPrefixOfTheChangesOfADirectory(t *testing.T) {
	seen := map[int]bool{}
	for seed := range uint64(50) {
		d := crashfs.New("dir")
		p := d.Process()
		for _, name := range []string{"a", "b", "c"} {
			write(t, p, "dir/"+name, "text", true)
		}
		d.Crash(rand.New(rand.NewPCG(seed, 0)))
		require.Subset(t, []string{"dir/a", "dir/b", "dir/c"}, d.Paths())
		for i, path := range d.Paths() {
			require.Equal(t, "dir/"+string(rune('a'+i)), path)
		}
		seen[len(d.Paths())] = true
	}
	require.Len(t, seen, 4)
}

func TestKill_FreesTheLockAndEndsEveryOperation(t *testing.T) {
	d := crashfs.New("dir")
	p, q := d.Process(), d.Process()
	lock, err := p.Lock("dir/LOCK", "p")
	require.NoError(t, err)
	_, err = q.Lock("dir/LOCK", "q")
	held, ok := errors.AsType[*crashfs.HeldError](err)
	require.True(t, ok)
	require.Equal(t, "p", held.Holder())
	p.Kill()
	_, err = q.Lock("dir/LOCK", "q")
	require.NoError(t, err)
	require.NoError(t, lock.Close(), "of somebody else's lock: does nothing")
	_, err = d.Process().Lock("dir/LOCK", "r")
	require.ErrorContains(t, err, "held by q")
	_, err = p.ReadDir("dir")
	require.ErrorIs(t, err, crashfs.ErrDead)
}

func TestLoseLocks_LetsAnotherProcessInBesideTheHolder(t *testing.T) {
	d := crashfs.New("dir")
	p, q := d.Process(), d.Process()
	_, err := p.Lock("dir/LOCK", "p")
	require.NoError(t, err)
	d.LoseLocks()
	_, err = q.Lock("dir/LOCK", "q")
	require.NoError(t, err)
	_, err = p.ReadDir("dir")
	require.NoError(t, err)
}

func TestHook_FailsAnOperationBeforeItHasAnEffect(t *testing.T) {
	d := crashfs.New("dir")
	p := d.Process()
	full := errors.New("no space left on device")
	p.Hook = func(op int, what, path string) error {
		if op == 1 {
			require.Equal(t, "link dir/b", what+" "+path)
			return full
		}
		return nil
	}
	write0, err := p.Create("dir/a")
	require.NoError(t, err)
	require.ErrorIs(t, p.Link("dir/a", "dir/b"), full)
	require.Equal(t, []string{"dir/a"}, d.Paths())
	require.NoError(t, write0.Close())
	require.Equal(t, 3, p.Ops())
}
