package sluicecmd

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestJobYAML_ValuesKeepTheirText(t *testing.T) {
	want := map[string]string{"a.b": "010", "c": "true", "d": "x: y # z", "e": "", "f": "two\nlines", "g": "~", "h": "ünï"}
	var settings []Setting
	for k, v := range want {
		settings = append(settings, Setting{k, v})
	}
	text, err := JobYAML(settings)
	require.NoError(t, err)
	var got map[string]string
	require.NoError(t, yaml.Unmarshal(text, &got))
	assert.Equal(t, want, got)
}
