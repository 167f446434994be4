// Command mutants checks that the tests notice when a safeguard is gone: it takes one safeguard at a time out of a copy of its file
// and runs the test that stands for it, which has to fail. `make mutants` runs all of them, from the module's root.
//
// The tree itself is never changed: the changed file goes to the compiler by `go test -overlay`.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// testTimeout bounds one test run, compilation included.
const testTimeout = 5 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survivors := 0
	for _, m := range mutants {
		start := time.Now()
		err := m.run(ctx)
		verdict := "killed by " + m.test
		if err != nil {
			survivors++
			verdict = "NOT KILLED: " + err.Error()
		}
		fmt.Printf("%-55s %s (%.0f s)\n", m.name, verdict, time.Since(start).Seconds())
	}
	fmt.Printf("mutants: %d of %d killed\n", len(mutants)-survivors, len(mutants))
	if survivors > 0 {
		os.Exit(1)
	}
}

// mutant is one safeguard and the test that must notice that it is gone.
type mutant struct {
	name string
	file string // from the module's root
	old  string // stands in the file exactly once
	new  string
	pkg  string
	test string // a regular expression of test names
}

// run returns nil when the test fails with the change, and passes without it.
func (m mutant) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.write(dir)
	if err != nil {
		return err
	}
	if out, err := goTest(ctx, m.pkg, m.test); err != nil {
		return fmt.Errorf("the test fails without the change too: %w\n%s", err, out)
	} else if strings.Contains(out, "no tests to run") {
		return fmt.Errorf("there is no test %s in %s", m.test, m.pkg)
	}
	out, err := goTest(ctx, m.pkg, m.test, "-overlay", overlay)
	switch {
	case err == nil:
		return fmt.Errorf("%s passes without the safeguard", m.test)
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return fmt.Errorf("the changed file does not compile:\n%s", out)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return nil
}

// write puts the changed file and the overlay that names it into dir.
func (m mutant) write(dir string) (overlay string, err error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("%s holds the code to change %d times instead of once: adapt the mutant", m.file, n)
	}
	changed := filepath.Join(dir, filepath.Base(m.file))
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	mapping, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(err,
		os.WriteFile(changed, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600),
		os.WriteFile(overlay, mapping, 0o600))
}

func goTest(ctx context.Context, pkg, test string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	args = append([]string{"test", "-run", test}, args...)
	out, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput()
	return string(out), err
}
