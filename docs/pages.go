// Package docs holds the pages for users, so that an installed program has them, too.
package docs

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

const extension = ".md"

// Names lists the pages, in alphabetical order.
func Names() (names []string) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // an embedded folder can be read
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), extension))
	}
	slices.Sort(names)
	return names
}

// Page returns a page as Markdown, and whether it exists.
func Page(name string) (text string, found bool) {
	page, err := files.ReadFile(path.Clean(name) + extension)
	return string(page), err == nil
}
