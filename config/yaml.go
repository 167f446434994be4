package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a configuration file. A real one is far below all of them; they keep a file fed by mistake, or one that
// expands itself through aliases, from taking the memory of the process.
const (
	maxYAMLBytes = 1 << 20
	maxYAMLNodes = 10_000 // nodes visited, each use of an alias counted anew
	maxYAMLDepth = 64
	maxKeyLength = 512
)

// YAML reads one YAML document from r; name stands in origins and errors. The nested and the flat spelling of a key are
// the same key, and a scalar keeps the text that the file has. A key set twice, a list, a key without a value, a tag
// other than !!str, a merge key and a second document are errors with their line. An empty document sets nothing, and a
// mapping may come in several pieces.
//
// r is read once, when the source is loaded, and not closed.
func YAML(name string, r io.Reader) Source { return &yamlSource{name: name, r: r} }

type yamlSource struct {
	name string
	r    io.Reader
}

func (s *yamlSource) Load(r *Registry, set func(key, text string, at Origin) error) error {
	data, err := io.ReadAll(io.LimitReader(s.r, maxYAMLBytes+1))
	if err != nil {
		return s.problem(0, err)
	}
	if len(data) > maxYAMLBytes {
		return s.problem(0, fmt.Errorf("larger than %s", MemorySize(maxYAMLBytes)))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return s.syntaxProblem(err)
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return s.syntaxProblem(err)
	default:
		return s.problem(second.Line, errors.New("a second document begins: one file is one configuration"))
	}
	w := yamlWalk{source: s, registry: r, set: set}
	w.root(document.Content[0])
	return errors.Join(w.problems...)
}

func (s *yamlSource) problem(line int, err error) error {
	return &SyntaxError{Origin: Origin{Source: s.name, Line: line}, Err: err}
}

// syntaxProblem turns an error of the YAML parser into one with our form of origin. The name of an unknown alias is left
// out: it may be a password that begins with an asterisk.
func (s *yamlSource) syntaxProblem(err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, reason, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				text, line = reason, n
			}
		}
	}
	if strings.Contains(text, "unknown anchor") {
		text = "alias without an anchor: a text that begins with * needs quotes"
	}
	return s.problem(line, errors.New(text))
}

// yamlWalk visits the nodes of one document.
type yamlWalk struct {
	source   *yamlSource
	registry *Registry
	set      func(key, text string, at Origin) error
	problems []error
	visited  int
}

func (w *yamlWalk) report(line int, format string, args ...any) {
	w.problems = append(w.problems, w.source.problem(line, fmt.Errorf(format, args...)))
}

func (w *yamlWalk) root(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // only comments
	}
	if n.Kind != yaml.MappingNode {
		w.report(n.Line, "the document is not a mapping of keys to values")
		return
	}
	w.mapping("", n, 0)
}

// mapping visits the pairs below prefix, which ends with a dot unless it is empty.
func (w *yamlWalk) mapping(prefix string, n *yaml.Node, depth int) {
	for i := 0; i+1 < len(n.Content) && w.visited <= maxYAMLNodes; i += 2 {
		if key, ok := w.key(n.Content[i]); ok {
			w.value(prefix+key, n.Content[i+1], n.Content[i].Line, depth)
		}
	}
}

// key returns the text of a key node.
func (w *yamlWalk) key(n *yaml.Node) (string, bool) {
	line := n.Line
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind != yaml.ScalarNode || n.Style&yaml.TaggedStyle != 0 || n.ShortTag() == "!!null":
		w.report(line, "a key is not a plain text")
	case n.ShortTag() == "!!merge":
		w.report(line, "merge keys (<<) are not supported: write the keys out")
	case len(n.Value) > maxKeyLength:
		w.report(line, "a key is longer than %d bytes", maxKeyLength)
	default:
		return n.Value, true
	}
	return "", false
}

// value visits what stands behind key, on the line of the key.
func (w *yamlWalk) value(key string, n *yaml.Node, line, depth int) {
	w.visited++
	switch {
	case w.visited > maxYAMLNodes:
		w.report(line, "more than %d values: too many, or aliases that repeat each other", maxYAMLNodes)
		return
	case depth > maxYAMLDepth || len(key) > maxKeyLength:
		w.report(line, "nested deeper than %d levels, or a key longer than %d bytes", maxYAMLDepth, maxKeyLength)
		return
	}
	switch n.Kind {
	case yaml.AliasNode:
		w.value(key, n.Alias, line, depth+1)
	case yaml.MappingNode:
		if m, ok := w.registry.lookup(key); ok && m.info.Secret {
			// Not visited: what looks like keys here is most likely a secret that needs quotes.
			w.report(line, "%s is a mapping, not a text: a text that begins with { needs quotes", key)
			return
		}
		w.mapping(key+".", n, depth+1)
	case yaml.ScalarNode:
		w.scalar(key, n, line)
	default:
		w.report(line, "%s is a list: write one text", quote(key))
	}
}

func (w *yamlWalk) scalar(key string, n *yaml.Node, line int) {
	switch tag := n.ShortTag(); {
	case n.Style&yaml.TaggedStyle != 0 && tag != "!!str":
		w.report(line, "%s has a tag: a text that begins with ! needs quotes", quote(key))
	case tag == "!!null":
		w.report(line, `%s has no value: remove the line, or write "" for an empty text`, quote(key))
	default:
		if err := w.set(key, n.Value, Origin{Source: w.source.name, Line: line}); err != nil {
			w.problems = append(w.problems, err)
		}
	}
}
