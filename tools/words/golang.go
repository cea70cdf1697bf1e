package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"unicode/utf8"
)

// maxLine is the longest line of Go and Markdown, in characters; a tab is one.
const maxLine = 120

// checkGo checks the comments, strings and declared names of a Go file.
func checkGo(all rules, path string, text []byte) []Finding {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []Finding{{path, 1, "syntax", err.Error()}}
	}
	if ast.IsGenerated(file) {
		return nil
	}
	found := longLines(path, text)
	add := func(pos token.Pos, broken []rule) {
		for _, r := range broken {
			found = append(found, Finding{path, files.Position(pos).Line, r.word, "write " + r.replacement})
		}
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if !strings.HasPrefix(c.Text, "//go:") {
				add(c.Pos(), all.inText(c.Text))
			}
		}
		// A phrase may be broken over two lines.
		if joined := group.Text(); len(group.List) > 1 {
			add(group.Pos(), onlyAcross(all, joined))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				add(n.Pos(), all.inText(n.Value))
			}
		case *ast.CallExpr:
			if strings.HasSuffix(path, "_test.go") && bareFailure(n) {
				line := files.Position(n.Pos()).Line
				found = append(found, Finding{path, line, "bare failure", "say what was got and what was wanted"})
			}
		}
		for _, name := range declared(n) {
			add(name.Pos(), all.inIdentifier(name.Name))
		}
		return true
	})
	return found
}

// declared returns the names that a node declares. Names that other packages declare are not ours to change.
func declared(n ast.Node) []*ast.Ident {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Key, n.Value)
		}
	}
	return nil
}

func identifiers(all ...ast.Expr) []*ast.Ident {
	var names []*ast.Ident
	for _, e := range all {
		if name, ok := e.(*ast.Ident); ok {
			names = append(names, name)
		}
	}
	return names
}

// onlyAcross returns the rules that a text breaks as a whole, but none of its lines alone.
func onlyAcross(all rules, text string) []rule {
	single := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		for _, r := range all.inText(line) {
			single[r.word] = true
		}
	}
	var across []rule
	for _, r := range all.inText(text) {
		if !single[r.word] {
			across = append(across, r)
		}
	}
	return across
}

// longLines finds lines over maxLine. A line with a link or without a space cannot be broken. A query in a raw string,
// and a row of a table in a test, read better in one line.
func longLines(path string, text []byte) []Finding {
	var found []Finding
	for i, line := range strings.Split(string(text), "\n") {
		if n := utf8.RuneCountInString(line); n > maxLine && strings.Contains(strings.TrimSpace(line), " ") &&
			!strings.Contains(line, "://") && !strings.HasPrefix(line, "|") && !query(path, line) && !tableRow(path, line) {
			found = append(found, Finding{path, i + 1, "line length", fmt.Sprintf("%d characters, at most %d", n, maxLine)})
		}
	}
	return found
}

// tableRow reports whether a line is a row of a table in a test: {"name", 1, 2},
func tableRow(path, line string) bool {
	row := strings.TrimSpace(line)
	return strings.HasSuffix(path, "_test.go") && strings.HasSuffix(row, ",") && (row[0] == '{' || row[0] == '"')
}

// query reports whether a line of Go holds a raw string.
func query(path, line string) bool {
	return strings.HasSuffix(path, ".go") && strings.Contains(line, "`")
}
