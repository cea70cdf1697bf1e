// Command thresholds checks that a test fails when a threshold moves. It reads the thresholds.go of each folder that it
// is given, and runs the test that a threshold's comment names with about 1.3 times the value, and with about 1/1.3 of
// it. No file changes: it builds the tests once, with variables in place of the constants.
//
// The last line of a comment has the unit, the source and the test: "s; chosen; TestX.". For one that names no test, it
// lists those that fail.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	failed := false
	for _, folder := range os.Args[1:] {
		problems, err := check(folder)
		if err != nil {
			problems = append(problems, err.Error())
		}
		for _, p := range problems {
			fmt.Fprintf(os.Stderr, "%s: %s\n", folder, p)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check moves all thresholds of a folder, one after another.
func check(folder string) (problems []string, err error) {
	path, err := filepath.Abs(filepath.Join(folder, "thresholds.go"))
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all, movable, err := read(text)
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "thresholds")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	tests := filepath.Join(temporary, "tests")
	if err := build(folder, path, movable, temporary, tests); err != nil {
		return nil, err
	}
	for _, t := range all {
		for _, to := range []string{"larger", "smaller"} {
			fail, err := failing(folder, tests, t.name+" "+to, t.test)
			switch {
			case err != nil:
				return problems, err
			case t.test == "":
				problems = append(problems, fmt.Sprintf("%s names no test; if it is %s, there fail: %v", t.name, to, fail))
			case len(fail) == 0:
				problems = append(problems, fmt.Sprintf("%s passes if %s is %s", t.test, t.name, to))
			}
		}
	}
	return problems, nil
}

// threshold is one number of a file.
type threshold struct {
	name string
	test string // that its comment names; "" if that is not complete
}

var lastLine = regexp.MustCompile(`(?:^|\n)[^;\n]+; (?:kernel|measured|chosen)\b[^;\n]*; (Test\w+)\.\n?$`)

// read finds the thresholds of a file: constants, and fields of variables that are structs. movable is the same file
// with variables. The environment says which one moves.
func read(text []byte) (all []threshold, movable string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "thresholds.go", text, parser.ParseComments)
	if err != nil {
		return nil, "", err
	}
	add := func(name string, comment *ast.CommentGroup) {
		t := threshold{name: name}
		if m := lastLine.FindStringSubmatch(comment.Text()); m != nil {
			t.test = m[1]
		}
		all = append(all, t)
	}
	movable = string(text)
	for _, declared := range slices.Backward(file.Decls) { // so that offsets stay
		if d, ok := declared.(*ast.GenDecl); ok && d.Tok == token.CONST {
			at := files.Position(d.Pos()).Offset
			movable = movable[:at] + "var" + movable[at+len("const"):]
		}
	}
	at := files.Position(file.Name.End()).Offset
	movable = movable[:at] + "\nimport \"os\"\n" + movable[at:] + mover
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if list, ok := spec.Values[0].(*ast.CompositeLit); ok {
			for _, field := range list.Type.(*ast.StructType).Fields.List {
				add(spec.Names[0].Name+"."+field.Names[0].Name, field.Doc)
			}
		} else {
			add(spec.Names[0].Name, spec.Doc)
		}
		return false
	})
	for _, t := range all {
		movable += fmt.Sprintf("\nfunc init() { move(%q, &%s) }\n", t.name, t.name)
	}
	return all, movable, nil
}

const mover = `
func move[T ~int | ~int64 | ~uint64 | ~float64](name string, value *T) {
	old := *value
	switch os.Getenv("THRESHOLD") {
	case name + " larger":
		if *value = old * 13 / 10; *value == old {
			*value++
		}
	case name + " smaller":
		*value = old * 10 / 13
	}
}
`

// build builds the tests of a folder with another text in place of a file.
func build(folder, path, text, temporary, tests string) error {
	changed, overlay := filepath.Join(temporary, "thresholds.go"), filepath.Join(temporary, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return err
	}
	command := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", tests, ".")
	command.Dir = folder
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go test: %w: %s", err, out)
	}
	return nil
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// failing returns those of the tests that fail with a threshold moved: of all, or of one.
func failing(folder, tests, threshold, test string) (names []string, err error) {
	command := exec.Command(tests, "-test.run", "^"+test)
	if test != "" {
		command = exec.Command(tests, "-test.run", "^"+test+"$")
	}
	command.Dir, command.Env = folder, append(os.Environ(), "THRESHOLD="+threshold)
	out, err := command.CombinedOutput()
	if strings.Contains(string(out), "no tests to run") {
		return nil, fmt.Errorf("there is no test %s", test)
	}
	for _, m := range failedTest.FindAllStringSubmatch(string(out), -1) {
		names = append(names, m[1])
	}
	if err != nil && len(names) == 0 {
		return nil, fmt.Errorf("%s: %w: %s", threshold, err, out)
	}
	return names, nil
}
