package config

import (
	"slices"
	"strings"
)

// MarkdownTable returns the options as a Markdown table, sorted by key, with a header and a final line break. The README
// holds it, and a test compares the two.
func MarkdownTable(infos []Info) string {
	infos = slices.Clone(infos)
	slices.SortStableFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	b.WriteString("| Key | Type | Default | Meaning |\n|---|---|---|---|\n")
	for _, info := range infos {
		b.WriteString("| `" + info.Name + "` | " + cell(info.Type) + " | " + defaultCell(info) + " | " + cell(meaning(info)) + " |\n")
	}
	return b.String()
}

// meaning is the option's text with its other spellings.
func meaning(info Info) string {
	if len(info.Aliases) == 0 {
		return info.Doc
	}
	return info.Doc + " Also spelled `" + strings.Join(info.Aliases, "`, `") + "`."
}

func defaultCell(info Info) string {
	switch {
	case info.Default == NoneText:
		return NoneText
	case info.Default == "":
		return `""`
	}
	return "`" + cell(info.Default) + "`"
}

// cell keeps a text inside one cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
