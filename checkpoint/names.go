package checkpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The names in a checkpoint directory. Every number of a run's history is the name of a file that can be created once:
// that, and not the lock alone, is what keeps two runs apart.
//
//	LOCK                          held by the live run
//	epoch-<20 digits>             claimed epochs; the greatest one rules
//	chk-<20 digits>.json          manifests
//	.tmp-<epoch>-<n>              a manifest that is being written
//	blobs/<20 digits>-<epoch>-<n>.blob   n counts the blob files of the run, so that no name is used twice
const (
	lockName  = "LOCK"
	blobsName = "blobs"
)

func epochName(epoch int64) string   { return fmt.Sprintf("epoch-%020d", epoch) }
func manifestName(id ID) string      { return fmt.Sprintf("chk-%020d.json", id) }
func tempName(epoch, n int64) string { return fmt.Sprintf(".tmp-%d-%d", epoch, n) }
func blobName(id ID, epoch, n int64) string {
	return fmt.Sprintf("%020d-%d-%d.blob", id, epoch, n)
}

// parseNumber reads a positive number; the caller compares the spelling.
func parseNumber(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}

func parseEpochName(name string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, "epoch-")
	n, isNumber := parseNumber(digits)
	return n, ok && isNumber && n > 0 && name == epochName(n)
}

func parseManifestName(name string) (ID, bool) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "chk-")
	n, isNumber := parseNumber(digits)
	return ID(n), ok && isNumber && n > 0 && name == manifestName(ID(n))
}

// parseTempName returns the epoch of a temporary file.
func parseTempName(name string) (int64, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return 0, false
	}
	epoch, ok1 := parseNumber(parts[1])
	n, ok2 := parseNumber(parts[2])
	return epoch, ok1 && ok2 && name == tempName(epoch, n)
}

// parseBlobName returns the checkpoint and the epoch of a blob file.
func parseBlobName(name string) (ID, int64, bool) {
	parts := strings.Split(strings.TrimSuffix(name, ".blob"), "-")
	if len(parts) != 3 {
		return 0, 0, false
	}
	id, ok1 := parseNumber(parts[0])
	epoch, ok2 := parseNumber(parts[1])
	n, ok3 := parseNumber(parts[2])
	return ID(id), epoch, ok1 && ok2 && ok3 && name == blobName(ID(id), epoch, n)
}

// ValidateJob reports why a name cannot be that of a job: job names are made of letters, digits, dot, underscore and hyphen, do not begin
// with a dot, and have at most 128 characters. Stores need it because a manifest with another name cannot be encoded.
func ValidateJob(name string) error { return validName("job", name) }

// validName accepts what is one harmless path segment on every system.
func validName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s name is empty", what)
	case len(name) > 128:
		return fmt.Errorf("%s name %.20q... is longer than 128 characters", what, name)
	case name[0] == '.' || strings.Contains(name, ".."):
		return fmt.Errorf("%s name %q begins with a dot or has two dots together", what, name)
	}
	for _, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && r != '.' && r != '_' && r != '-' {
			return fmt.Errorf("%s name %q: %q is not allowed, only letters, digits, dot, underscore and hyphen", what, name, r)
		}
	}
	return nil
}

// listing is what is in a checkpoint directory.
type listing struct {
	ids    []ID    // ascending
	epochs []int64 // ascending
	temps  []string
}

func parseListing(names []string) (l listing) {
	for _, name := range names {
		if id, ok := parseManifestName(name); ok {
			l.ids = append(l.ids, id)
		} else if epoch, ok := parseEpochName(name); ok {
			l.epochs = append(l.epochs, epoch)
		} else if _, ok := parseTempName(name); ok {
			l.temps = append(l.temps, name)
		}
	}
	slices.Sort(l.ids)
	slices.Sort(l.epochs)
	return l
}

// newest returns the greatest id, 0 when there is none.
func (l listing) newest() ID {
	if len(l.ids) == 0 {
		return 0
	}
	return l.ids[len(l.ids)-1]
}

// epoch returns the greatest claimed epoch, 0 when there is none.
func (l listing) epoch() int64 {
	if len(l.epochs) == 0 {
		return 0
	}
	return l.epochs[len(l.epochs)-1]
}
