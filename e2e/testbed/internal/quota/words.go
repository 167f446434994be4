package quota

import (
	"fmt"
	"regexp"
	"strings"
)

// words keeps what a process says last, from its lines. It is used by one
// goroutine, and read after the process is gone.
type words struct{ line, named string }

// errorPrefix begins the line in which the sluice command says why it failed.
const errorPrefix = "sluice: "

func (w *words) take(line string) {
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	w.line = line
	// A failure with several causes has several lines; the first cause is the one.
	if text, ok := strings.CutPrefix(line, errorPrefix); ok && w.named == "" {
		w.named = text
	}
}

// last returns why the process failed, in its own words, or its last line.
func (w *words) last() string {
	if w.named != "" {
		return w.named
	}
	return w.line
}

// failure is how the library says that a call has used up its attempts.
var failure = regexp.MustCompile(`(create upload|upload part|complete upload|put|head|list)\b.* after ([0-9]+) attempts?: (.*)`)

// short cuts an error down to what fits into a table: the operation, how many
// attempts it took, and what the last answer was.
func short(text string) string {
	const most = 80
	if m := failure.FindStringSubmatch(text); m != nil {
		answer, _, _ := strings.Cut(m[3], "[")
		text = fmt.Sprintf("%s, %s attempts, the last one: %s", m[1], m[2], cut(strings.TrimSpace(answer), most))
	}
	return strings.ReplaceAll(cut(text, 2*most), "|", "/")
}

func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "..."
	}
	return text
}
