package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
)

// reportFile is the file named by --report, empty for none.
type reportFile string

func reportFlag(cmd *cobra.Command, file *reportFile, what string) {
	cmd.Flags().StringVar((*string)(file), "report", "", "write "+what+" to this file, as JSON")
}

// check finds out whether the file can be written, before there is anything to lose. It leaves no trace.
func (r reportFile) check() error {
	if r == "" {
		return nil
	}
	_, missing := os.Stat(string(r))
	f, err := os.OpenFile(string(r), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return usage(fmt.Errorf("--report: %w", err))
	}
	err = f.Close()
	if errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, os.Remove(string(r)))
	}
	return err
}

// write writes v, indented.
func (r reportFile) write(v any) error {
	if r == "" {
		return nil
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(string(r), append(text, '\n'), 0o644)
}
