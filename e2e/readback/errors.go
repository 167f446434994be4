package readback

import "errors"

// ErrNoOpener is returned by [CheckRows] when it was given no way to open files.
var ErrNoOpener = errors.New("no opener for files")
