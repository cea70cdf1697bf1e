// Command words refuses words that readers of technical English stumble over, lines that are too long and pages whose
// sentences are too long. The words and their replacements are in words.txt, next to this file.
//
//	hack/tool.sh words [-counts] [FILE|FOLDER ...]
//
// It checks Go files (comments, strings, identifiers), Markdown pages (prose, no code blocks) and the registry's YAML.
// Generated Go files are left out: their text comes from the registry. It exits with 1 where it finds anything.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	counts := flag.Bool("counts", false, "print only how often each rule was broken, and how many sentences are long")
	list := flag.String("list", "tools/words/words.txt", "the rules")
	flag.Parse()
	found, err := run(*list, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}
	if *counts {
		printCounts(found)
		long, all, err := sentenceCounts(flag.Args())
		if err != nil {
			fmt.Fprintln(os.Stderr, "words:", err)
			os.Exit(2)
		}
		fmt.Printf("%6d of %d sentences on pages are over %d words\n", long, all, longSentence)
	} else {
		for _, f := range found {
			fmt.Println(f)
		}
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// A Finding is one place that breaks a rule.
type Finding struct {
	File   string
	Line   int // from 1
	Rule   string
	Advice string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Rule, f.Advice)
}

// run checks the files and folders, by default everything below the working directory.
func run(list string, roots []string) ([]Finding, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	all, err := parseRules(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	var found []Finding
	err = eachFile(roots, func(path string) error {
		more, err := checkFile(all, path)
		found = append(found, more...)
		return err
	})
	return found, err
}

// eachFile calls check for every file below the roots, by default below the working directory.
func eachFile(roots []string, check func(path string) error) error {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for _, root := range roots {
		folder := strings.TrimSuffix(root, "/...")
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && skipped(path):
				return filepath.SkipDir
			case entry.IsDir():
				return nil
			}
			return check(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sentenceCounts returns how many sentences of the pages are long, and how many there are.
func sentenceCounts(roots []string) (long, all int, err error) {
	err = eachFile(roots, func(path string) error {
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range sentences(withoutCode(string(text))) {
			all++
			if len(strings.Fields(s)) > longSentence {
				long++
			}
		}
		return nil
	})
	return long, all, err
}

// skipped reports whether a folder holds nothing that people wrote here.
func skipped(dir string) bool {
	return slices.Contains([]string{".git", "build", "node_modules", "words"}, filepath.Base(dir))
}

func checkFile(all rules, path string) ([]Finding, error) {
	var check func(rules, string, []byte) []Finding
	switch {
	case strings.HasSuffix(path, ".go"):
		check = checkGo
	case strings.HasSuffix(path, ".md"):
		check = checkMarkdown
	case strings.HasSuffix(path, ".yaml") && strings.Contains(path, "semconv/registry"):
		check = checkText
	default:
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return check(all, filepath.Clean(path), text), nil
}

// printCounts prints the rules by how often they were broken.
func printCounts(found []Finding) {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.Rule]++
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	for _, name := range names {
		fmt.Printf("%6d %s\n", counts[name], name)
	}
}
