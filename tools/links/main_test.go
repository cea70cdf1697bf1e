package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"p/a.md": "# A `title`, twice\n\n# A title, twice\n\n[self](#a-title-twice-1) [b](b.md#one_two) [web](https://x.example/y.md)\n" +
			"```\n# no heading\n[no](link.md)\n```\n`[no](code.md)` ![picture](gone.svg) [bad](b.md#no-heading)\n",
		"p/b.md": "## [One_two](a.md)\n",
		"x.go":   "// See " + "docs/" + "gone.md.\n",

		"docs" + "/README.md":      "[one](one.md#one)\n",
		"docs" + "/one.md":         "# One\n",
		"docs" + "/two.md":         "# Two\n",
		"docs" + "/internals/a.md": "# A\n",
		"docs" + "/adr/0001.md":    "# A list of its own\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	got, err := check(".")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"docs/README.md: no link to " + "docs/" + "internals/a.md",
		"docs/README.md: no link to " + "docs/" + "two.md",
		"p/a.md: no such file: p/gone.svg",
		"p/a.md: no such heading: p/b.md#no-heading",
		"x.go: no such file: docs" + "/gone.md",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("check (-want +got):\n%s", diff)
	}
}
