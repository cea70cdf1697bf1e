package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/agent/internal/cli"
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
	if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.err.String(), "did you mean verdicts?") {
		t.Errorf("got exit code %d and %q, want a suggestion", code, v.err.String())
	}
}

// Outputs of check on the pages have the states and areas that it prints.
func TestCheckOnPages(t *testing.T) {
	states := []check.State{check.Seen, check.Limited, check.Missing, check.Off}
	line := regexp.MustCompile(`(?m)^([a-z]+) +(GPU|disks|health|pressure|cgroup|processes|scheduler|CPU|clock|container|` +
		`API|export) +[A-Z0-9]`)
	found := 0
	for _, name := range manual.Names() {
		text, _ := manual.Page(name)
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			if found++; !slices.Contains(states, check.State(m[1])) {
				t.Errorf("%s: got the state %q of %s, want one of %v", name, m[1], m[2], states)
			}
		}
	}
	if found < 3 {
		t.Errorf("got %d lines of check on the pages, want the three of the tutorial", found)
	}
}

// The page about unknown verdicts quotes what findings say.
func TestFindingsOnThePage(t *testing.T) {
	text, _ := manual.Page("troubleshooting")
	_, list, _ := strings.Cut(text, "The finding gives the reason.\n")
	list, _, _ = strings.Cut(list, "\n#")
	var sources strings.Builder
	files, err := filepath.Glob("../internal/explain/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(source)
	}
	said := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(sources.String(), "") // texts of several lines
	items := regexp.MustCompile(`(?m)^- ([^:]+):`).FindAllStringSubmatch(list, -1)
	if len(items) < 15 {
		t.Fatalf("got %d items, want those of all unknown verdicts", len(items))
	}
	for _, item := range items {
		quoted := strings.Join(strings.Fields(item[1]), " ")
		if !strings.Contains(said, quoted) && !strings.Contains(said, `"`+strings.TrimPrefix(quoted, "waited ")+`"`) {
			t.Errorf("got %q on the page, want a text of package explain", quoted)
		}
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
