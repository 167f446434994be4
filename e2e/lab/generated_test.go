package lab

import (
	"fmt"
	"os"
	"strings"
)

// replaceGenerated puts text between the markers "<!-- name -->" and "<!-- /name -->" of a file.
func replaceGenerated(path, name, text string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), "<!-- "+name+" -->\n")
	if !ok {
		return fmt.Errorf("%s: no marker for %s", path, name)
	}
	_, after, ok := strings.Cut(rest, "<!-- /"+name+" -->")
	if !ok {
		return fmt.Errorf("%s: no end of %s", path, name)
	}
	return os.WriteFile(path, []byte(before+"<!-- "+name+" -->\n\n"+text+"\n<!-- /"+name+" -->"+after), 0o644)
}
