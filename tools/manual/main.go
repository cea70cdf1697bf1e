// Manual writes the man pages and the shell completions of stallspan, which archives and packages contain.
//
//	hack/tool.sh manual -o FOLDER
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/stallspan/stallspan/agent"
)

func main() {
	out := flag.String("o", "build/manual", "the folder to write man1, bash, zsh and fish to")
	flag.Parse()
	if err := write(agent.Command(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(root *cobra.Command, out string) error {
	root.DisableAutoGenTag = true
	man := filepath.Join(out, "man1")
	if err := os.MkdirAll(man, 0o750); err != nil {
		return err
	}
	root.Long = withCommands(root)
	date := commitTime()
	header := &doc.GenManHeader{Section: "1", Source: "Stallspan", Manual: "Stallspan", Date: &date}
	if err := doc.GenManTree(root, header, man); err != nil {
		return err
	}
	for path, generate := range map[string]func(io.Writer) error{
		"bash/stallspan":      func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh/_stallspan":      root.GenZshCompletion,
		"fish/stallspan.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		if err := writeFile(filepath.Join(out, path), generate); err != nil {
			return err
		}
	}
	return nil
}

// withCommands is the description of the first page: what each command does, as Markdown.
func withCommands(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(root.Short + ".\n\n")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&b, "- **%s**: %s\n", c.Name(), c.Short)
		}
	}
	b.WriteString("\nEach has a page of its own. `stallspan docs` shows the documentation.\n")
	return b.String()
}

// commitTime is the date on the pages: hack/dist.sh sets it, so that the same commit gives the same pages.
func commitTime() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Now().UTC()
}

func writeFile(path string, generate func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := generate(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
