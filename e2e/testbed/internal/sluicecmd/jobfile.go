package sluicecmd

import "go.yaml.in/yaml/v3"

// Setting is one line of a job file.
type Setting struct{ Key, Value string }

// JobYAML renders settings as YAML. Values are scalars of the text as it is:
// the encoder quotes what would otherwise change its meaning.
func JobYAML(settings []Setting) ([]byte, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		key, value := &yaml.Node{}, &yaml.Node{}
		key.SetString(s.Key)
		value.SetString(s.Value)
		doc.Content = append(doc.Content, key, value)
	}
	return yaml.Marshal(doc)
}
