package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent"
)

func TestManual(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795434638")
	first, second := t.TempDir(), t.TempDir()
	for _, out := range []string{first, second} {
		if err := write(agent.Command(), out); err != nil {
			t.Fatal(err)
		}
	}
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		page := filepath.Join("man1", strings.ReplaceAll(c.CommandPath(), " ", "-")+".1")
		if text := read(t, first, page); !strings.Contains(text, c.Short) {
			t.Errorf("%s: got a page without %q", page, c.Short)
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check(agent.Command())
	files := 0
	err := filepath.WalkDir(first, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		name, err := filepath.Rel(first, path)
		if err != nil {
			return err
		}
		if a, b := read(t, first, name), read(t, second, name); a != b {
			t.Errorf("%s: got another text the second time", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("got %d files, want a page for each command and three completions", files)
	}
	for path, want := range map[string]string{
		"bash/stallspan":      "complete -o default -F __start_stallspan stallspan",
		"zsh/_stallspan":      "#compdef stallspan",
		"fish/stallspan.fish": "complete -c stallspan",
	} {
		if !strings.Contains(read(t, first, path), want) {
			t.Errorf("%s: got no %q", path, want)
		}
	}
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
