package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMarkdownTable_IsSortedAndKeepsEveryTextInItsCell(t *testing.T) {
	infos := []Info{
		String("b", "", "Text with a | and\na line break.").Info(),
		SecretText("a-secret", "Hidden.", WithAliases[Secret]("a.secret", "old-secret")).Info(),
		Enum("c", darkBlue, []color{red, darkBlue}, "One.").Info(),
		Int("fields.#.length", 100, "Length.", AtLeast[int64](1)).Info(),
	}
	assert.Equal(t, ""+
		"| Key | Type | Default | Meaning |\n"+
		"|---|---|---|---|\n"+
		"| `a-secret` | secret | (none) | Hidden. Also spelled `a.secret`, `old-secret`. |\n"+
		"| `b` | string | \"\" | Text with a \\| and a line break. |\n"+
		"| `c` | enum (red, dark-blue) | `dark-blue` | One. |\n"+
		"| `fields.#.length` | int | `100` | Length. At least 1. |\n", MarkdownTable(infos))
	assert.Equal(t, "b", infos[0].Name, "the caller's slice keeps its order")
}
