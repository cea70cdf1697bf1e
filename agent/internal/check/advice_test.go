package check

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// tooMuch are commands and settings that give more than a user needs who follows an advice of this program.
var tooMuch = []struct{ pattern, gives string }{
	{`\bsetcap\b`, "the capabilities to every user who may run the file"},
	{`--privileged|privileged: true`, "the whole machine to the container"},
	{`chown -R`, "also the limits of a cgroup, or whatever else lies in the folder"},
	{`\bchgrp\b`, "access to all members of the group"},
	{`usermod -a?G|gpasswd -a|adduser \w+ (disk|root|docker)`, "everything of that group"},
	{`chmod (-R|[0-7]*[2367]\b|[augo]*o?\+\w*w|u\+s)`, "write access or rights to all users"},
	{`hidepid=0`, "all processes to all users"},
	{`(perf_event_paranoid|ptrace_scope|kptr_restrict|unprivileged_bpf_disabled)\s*=\s*-?\d`, "a protection of the kernel"},
	{`setenforce|(seccomp|apparmor|label)[:=](unconfined|disable)`, "all protection of the program"},
	{`--cap-add[= ]?(ALL|SYS_ADMIN)|-v /:/`, "the whole machine to the container"},
	{`NOPASSWD: *ALL`, "root"},
	{`curl [^|]*\| *(sudo )?(ba)?sh`, "the machine to the owner of the page"},
}

// butSays are settings that give more than their purpose needs, because nothing smaller exists. The text must say so.
var butSays = []struct{ pattern, says string }{
	{`--pid=host`, `signal`},
	{`install -d.* -g`, `admit a group`},
	{`SupplementaryGroups=disk|the group .?disk`, `write all disks`},
	{`CAP_SYS_ADMIN`, `nearly root|or later`},
}

// wrong is why an advice gives more than it says, or "".
func wrong(text string) string {
	for _, rule := range tooMuch {
		if found := regexp.MustCompile(rule.pattern).FindString(text); found != "" {
			return strconv.Quote(found) + " gives " + rule.gives
		}
	}
	for _, rule := range butSays {
		if found := regexp.MustCompile(rule.pattern).FindString(text); found != "" &&
			!regexp.MustCompile(rule.says).MatchString(text) {
			return strconv.Quote(found) + " gives more than the text says: it lacks " + strconv.Quote(rule.says)
		}
	}
	return ""
}

// No text of the program and no page may advise to give more than it says.
func TestAdviceGivesNoMoreThanItSays(t *testing.T) {
	const root = "../../.."
	texts := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." || entry.Name() == "build" ||
			entry.Name() == "testdata" || path == root+"/test" || path == root+"/hack"):
			return filepath.SkipDir
		}
		switch filepath.Ext(path) {
		case ".go":
			if !strings.HasSuffix(path, "_test.go") {
				return eachString(path, func(line int, text string) {
					texts++
					if why := wrong(text); why != "" {
						t.Errorf("%s:%d: got %.200q: %s", path, line, text, why)
					}
				})
			}
		case ".md", ".yaml", ".yml", ".service", ".conf", ".py", ".sh", ".sbatch", ".slurm", ".ipynb":
			if entry.Name() == "CHANGELOG.md" { // it names what was wrong
				return nil
			}
			text, err := os.ReadFile(path)
			for paragraph := range strings.SplitSeq(string(text), "\n\n") {
				texts++
				if why := wrong(strings.Join(strings.Fields(paragraph), " ")); why != "" {
					t.Errorf("%s: got %.200q: %s", path, paragraph, why)
				}
			}
			return err
		}
		return nil
	})
	if err != nil || texts < 5000 {
		t.Errorf("got %d texts, %v; want thousands", texts, err)
	}
}

// eachString finds the strings of a Go file, each with the literals that are added to it.
func eachString(path string, found func(line int, text string)) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var visit func(ast.Node) bool
	visit = func(node ast.Node) bool {
		expression, ok := node.(ast.Expr)
		if !ok {
			return true
		}
		if text := joined(expression); text != "" {
			found(files.Position(node.Pos()).Line, text)
		}
		sum, ok := node.(*ast.BinaryExpr)
		if !ok {
			return true
		}
		for _, operand := range others(sum) { // such as calls that have texts of their own
			ast.Inspect(operand, visit)
		}
		return false
	}
	ast.Inspect(file, visit)
	return nil
}

// others are the operands of a sum that are no literals.
func others(e ast.Expr) []ast.Expr {
	switch e := e.(type) {
	case *ast.BasicLit:
		return nil
	case *ast.BinaryExpr:
		return append(others(e.X), others(e.Y)...)
	}
	return []ast.Expr{e}
}

// joined is the text of a literal, or of literals joined with +. Other operands are left out.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return joined(e.X) + joined(e.Y)
		}
	}
	return ""
}

// The texts in a call that is added to a literal are found, too.
func TestEachString(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.go")
	text := "package a\nvar x = \"run \" + f(\"sudo \"+\"b\", 1) + \" now\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := eachString(path, func(_ int, text string) { got = append(got, text) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"run  now", "sudo b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The rules find what earlier versions advised.
func TestAdviceRules(t *testing.T) {
	for _, text := range []string{
		"sudo setcap cap_sys_ptrace,cap_dac_read_search+ep /usr/bin/stallspan", "docker run --privileged ...",
		"d=/sys/fs/cgroup/u1; mkdir $d; chown -R 1 $d", "sudo chgrp 100 /run/stallspan/stallspan.sock",
		"sudo install -d -m 2750 -g 100 /run/stallspan", "usermod -aG disk me", "sudo mount -o remount,hidepid=0 /proc", "docker run --pid=host ...",
		"chmod 777 /run", "chmod a+w f", "chmod go+w f", "chmod +w f",
	} {
		if wrong(text) == "" {
			t.Errorf("%q: got no objection, want one", text)
		}
	}
	for _, text := range []string{"chmod o-w f", "chmod +x f", "chmod 0750 f", "chmod go-w f", "chmod o= f"} {
		if why := wrong(text); why != "" {
			t.Errorf("%q: got %q, want no objection", text, why)
		}
	}
}

// The advice for a cgroup gives what cgroup-v2.rst names for a delegatee, also in a folder with blanks.
func TestCgroupFix(t *testing.T) {
	m := &machine{root: t.TempDir()}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	got := m.cgroupFix("/sys/fs/cgroup/a b", syscall.EACCES)
	if !errors.Is(syscall.EACCES, os.ErrPermission) || !strings.Contains(got, "d='/sys/fs/cgroup/a b/u") {
		t.Errorf("got %q, want the folder in quotes", got)
	}
	if want := `"$d" "$d"/cgroup.procs "$d"/cgroup.threads "$d"/cgroup.subtree_control;`; !strings.Contains(got, want) {
		t.Errorf("got %q, want chown of %s alone", got, want)
	}
}
