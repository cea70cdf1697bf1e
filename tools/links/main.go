// Command links checks the links of all Markdown pages: that files exist, and that headings exist for anchors. It also
// checks pages that other files mention, such as docs/events.md in a comment, and that docs/README.md lists all pages
// next to it and in internals. Links to the network are not followed.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

func main() {
	problems, err := check(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```\\s*?$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	target  = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	mention = regexp.MustCompile(`\bdocs/[A-Za-z0-9_./-]+\.md(?:#[a-z0-9_-]+)?`)
)

// mentioning are the kinds of files in which the name of a page is a promise to the reader.
var mentioning = []string{".go", ".py", ".sh", ".yml", ".yaml", ".c", ".json"}

func check(root string) ([]string, error) {
	pages := map[string]map[string]bool{} // path of a page, and the anchors of its headings
	links := map[string][]string{}        // path of a file, and its links, relative to root
	var problems []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			name := entry.Name()
			foreign := name == ".git" || name == "build" || name == "node_modules"
			if path != root && (foreign || name == "testdata" && !hasPages(path)) {
				return fs.SkipDir
			}
			return nil
		}
		kind := filepath.Ext(path)
		if kind != ".md" && entry.Name() != "Makefile" && !slices.Contains(mentioning, kind) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(data)
		if kind != ".md" {
			for _, page := range mention.FindAllString(text, -1) {
				links[path] = append(links[path], filepath.Join(root, page))
			}
			return nil
		}
		text = fence.ReplaceAllString(text, "")
		pages[path] = anchors(text)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			if strings.HasPrefix(to, "#") {
				to = filepath.Base(path) + to
			}
			links[path] = append(links[path], filepath.Join(filepath.Dir(path), to))
		}
		return nil
	})
	for from, all := range links {
		for _, to := range all {
			file, anchor, _ := strings.Cut(to, "#")
			if _, err := os.Stat(file); err != nil {
				problems = append(problems, fmt.Sprintf("%s: no such file: %s", from, file))
			} else if known, ok := pages[file]; anchor != "" && ok && !known[anchor] {
				problems = append(problems, fmt.Sprintf("%s: no such heading: %s", from, to))
			}
		}
	}
	problems = append(problems, unlisted(root, pages, links)...)
	slices.Sort(problems)
	return slices.Compact(problems), err
}

// unlisted names the pages of the documentation that its index does not link to.
func unlisted(root string, pages map[string]map[string]bool, links map[string][]string) (problems []string) {
	docs := filepath.Join(root, "docs")
	index := filepath.Join(docs, "README.md")
	listed := map[string]bool{index: true}
	for _, to := range links[index] {
		file, _, _ := strings.Cut(to, "#")
		listed[file] = true
	}
	for page := range pages {
		folder := filepath.Dir(page)
		if (folder == docs || folder == filepath.Join(docs, "internals")) && !listed[page] {
			problems = append(problems, fmt.Sprintf("%s: no link to %s", index, page))
		}
	}
	return problems
}

// hasPages reports whether a folder has Markdown pages directly in it or one level below.
func hasPages(folder string) bool {
	found, _ := filepath.Glob(filepath.Join(folder, "*.md"))
	below, _ := filepath.Glob(filepath.Join(folder, "*", "*.md"))
	return len(found)+len(below) > 0
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		title := strings.ReplaceAll(target.ReplaceAllString(m[1], "$1"), "`", "")
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		unique := name
		for n := 1; all[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		all[unique] = true
	}
	return all
}
