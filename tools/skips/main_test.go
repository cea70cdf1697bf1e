package main

import (
	"bytes"
	"strings"
	"testing"
)

const list = `
# A comment.
always ~ make end-to-end
root = false
root ~ needs root
fuse = true
fuse ~ FUSE
programs = sh no-such-program
`

// judged returns what is printed of the output of a command.
func judged(t *testing.T, output string) (printed string, unexplained int) {
	t.Helper()
	a, err := parse(list)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := report{out: &out}
	if err := r.read(strings.NewReader(strings.TrimPrefix(output, "\n"))); err != nil {
		t.Fatal(err)
	}
	unexplained = r.judge(a)
	return out.String(), unexplained
}

func TestSkipsAreExplainedByWhatIsMissing(t *testing.T) {
	const tested = `
{"Action":"start","Package":"PREFIX/a"}
{"Action":"output","Package":"PREFIX/a","Test":"TestRuns","Output":"    a_test.go:3: noise\n"}
{"Action":"pass","Package":"PREFIX/a","Test":"TestRuns"}
{"Action":"output","Package":"PREFIX/a","Test":"TestSkips","Output":"=== RUN   TestSkips\n"}
{"Action":"output","Package":"PREFIX/a","Test":"TestSkips","Output":"    a_test.go:7: MESSAGE\n"}
{"Action":"output","Package":"PREFIX/a","Test":"TestSkips","Output":"--- SKIP: TestSkips (0.00s)\n"}
{"Action":"skip","Package":"PREFIX/a","Test":"TestSkips"}
{"Action":"output","Package":"PREFIX/a","Output":"PASS\n"}
{"Action":"output","Package":"PREFIX/a","Output":"ok  \ta\t(cached)\n"}
{"Action":"pass","Package":"PREFIX/a"}
{"Action":"output","Package":"b","Output":"?   \tb\t[no test files]\n"}
{"Action":"skip","Package":"b"}
`
	const header, counts = "ok  \ta\t(cached)\n?   \tb\t[no test files]\n", "1 tests ran, 1 were skipped: "
	without := func(why string) string {
		return "skipped without need: a TestSkips: " + why + "\n" + counts + "1 without need\n"
	}
	for message, want := range map[string]string{
		"needs root, to mount":      counts + "0 without need, root 1\n",
		"needs root and FUSE":       counts + "0 without need, root 1\n",
		"needs no-such-program: x":  counts + "0 without need, no-such-program 1\n",
		"make end-to-end builds it": counts + "0 without need, always 1\n",
		"needs FUSE: no device":     without("needs FUSE: no device: this machine has fuse"),
		"the moon is full":          without("the moon is full: no line of .ci/expected-skips is for it"),
	} {
		got, unexplained := judged(t, strings.NewReplacer("PREFIX/", module, "MESSAGE", message).Replace(tested))
		if got != header+want || (unexplained == 1) != strings.HasPrefix(want, "skipped") {
			t.Errorf("%s: got %d unexplained skips and\n%s\nwant\n%s", message, unexplained, got, header+want)
		}
	}
}

func TestBenchesAreJudgedToo(t *testing.T) {
	got, unexplained := judged(t, "built\nskipped: the bench needs root\nskipped: needs sh\n")
	const want = "built\nskipped: the bench needs root\nskipped: needs sh\n" +
		"skipped without need: bench: needs sh: this machine has sh\n" +
		"0 tests ran, 2 were skipped: 1 without need, root 1\n"
	if got != want || unexplained != 1 {
		t.Errorf("got %d unexplained skips and\n%s\nwant 1 and\n%s", unexplained, got, want)
	}
	if got, _ := judged(t, "no test at all\n"); got != "no test at all\n" {
		t.Errorf("got %q, want no counts", got)
	}
}

// A package that failed prints what its failed and unfinished tests printed, and nothing of the others.
func TestFailuresArePrinted(t *testing.T) {
	got, _ := judged(t, `
{"Action":"build-output","ImportPath":"c","Output":"c.go:1: syntax error\n"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"good\n"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestBad","Output":"=== RUN   TestBad\nbad\n"}
{"Action":"fail","Package":"a","Test":"TestBad"}
{"Action":"output","Package":"a","Output":"FAIL\ta\n"}
{"Action":"fail","Package":"a"}
{"Action":"output","Package":"d","Test":"TestUnfinished","Output":"panic\n"}
{"Action":"fail","Package":"d"}
`)
	const want = "c.go:1: syntax error\nbad\nFAIL\ta\npanic\n2 tests ran, 0 were skipped: 0 without need\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestListsMustBeComplete(t *testing.T) {
	for _, text := range []string{"root ~ needs root", "root needs root", "root =", "root = true\nroot ~ ("} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q: got no error, want one", text)
		}
	}
}
