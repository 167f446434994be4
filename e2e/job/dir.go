package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/sink"
)

// probeName is the file that checkDir makes. It has one name, so that a process killed at this moment leaves something that the next
// one takes away.
const probeName = ".sluice-probe"

// checkDir finds out early whether checkpoints can be written below dir: it writes and removes an empty file in dir or, as long as that
// does not exist, in the nearest directory above. It creates no directory, since that has to be made durable.
func checkDir(dir string) error {
	bad := func(err error) error { return fmt.Errorf("%s = %q: %w", sink.KeyCheckpointDir.Name(), dir, err) }
	place := filepath.Clean(dir)
	f, err := os.Create(filepath.Join(place, probeName))
	for errors.Is(err, fs.ErrNotExist) && place != filepath.Dir(place) {
		place = filepath.Dir(place)
		f, err = os.Create(filepath.Join(place, probeName))
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("write to %s: %w", place, pe.Err)
	}
	if err != nil {
		return bad(err)
	}
	err = f.Close()
	if removed := os.Remove(f.Name()); removed != nil && !errors.Is(removed, fs.ErrNotExist) { // another shard probes here too
		err = errors.Join(err, removed)
	}
	if err != nil {
		return bad(err)
	}
	return nil
}
