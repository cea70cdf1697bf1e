package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	manual "github.com/stallspan/stallspan/docs"
)

func TestDocs(t *testing.T) {
	v := stallspan(t, "docs", "verdicts")
	if code := v.run(); code != 0 || !strings.HasPrefix(v.out.String(), "# ") {
		t.Errorf("got exit code %d and %.40q, want a page", code, v.out.String())
	}
	v = stallspan(t, "docs")
	if code := v.run(); code != 0 || !strings.Contains(v.out.String(), "verdicts") {
		t.Errorf("got exit code %d and %q, want a list of pages", code, v.out.String())
	}
	v = stallspan(t, "docs", "verdict")
	if code := v.run(); code != exitUsage || !strings.Contains(v.err.String(), "did you mean verdicts?") {
		t.Errorf("got exit code %d and %q, want a suggestion", code, v.err.String())
	}
}

// Every page that a message names exists, and no message names a file that an installed program has not.
func TestMessagesNamePages(t *testing.T) {
	page := regexp.MustCompile("stallspan docs ([a-z]+)")
	file := regexp.MustCompile(`"[^"]*\bdocs/[a-z]+\.md`)
	for _, folder := range []string{".", "../internal"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(strings.TrimSpace(line), "//") {
					continue
				}
				if found := file.FindString(line); found != "" {
					t.Errorf("%s: got %s, want the command that prints the page", path, found)
				}
				for _, found := range page.FindAllStringSubmatch(line, -1) {
					if !slices.Contains(manual.Names(), found[1]) {
						t.Errorf("%s: got the page %s, want one of %v", path, found[1], manual.Names())
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
