package agent

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLiveLines: on a terminal, run says what it watches and how each epoch went, on lines of their own.
func TestLiveLines(t *testing.T) {
	t.Parallel()
	const program = `echo Epoch 1/2; printf "half a line"; sleep 0.3; printf "\nEpoch 2/2\nand a bar"; sleep 0.3`
	v := stallspan(t, "run", "--", "sh", "-c", program)
	s := onScreen(t, v)
	if code := s.end(v); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	for _, want := range []string{
		"stallspan: watching sh -c;", "\nstallspan: epoch 1: ", "\nstallspan: epoch 2: ",
	} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("got %q, want %q in it", s.String(), want)
		}
	}
	quiet := stallspan(t, "run", "--quiet", "--", "sh", "-c", program)
	s = onScreen(t, quiet)
	code := s.end(quiet)
	if text := s.String(); code != 0 || strings.Contains(text, "stallspan") || strings.Contains(text, "verdict") {
		t.Errorf("got exit code %d and %q, want the program's output alone", code, text)
	}
}

// TestNoLiveLines: without a terminal, standard error is the program's until the table.
func TestNoLiveLines(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--", "sh", "-c", "echo Epoch 1/1; sleep 0.1")
	if code := v.run(); code != 0 || strings.Contains(v.err.String(), "watching") {
		t.Errorf("got exit code %d and %q, want a table alone", code, &v.err)
	}
}

// TestStateSoFar: SIGUSR1 prints the open windows. It does not kill a program that has no handler for it.
func TestStateSoFar(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--", "sh", "-c", "echo Epoch 7/9; read line; exit 4")
	printed, table := &liveOutput{}, &liveOutput{}
	v.Stdout, v.Stderr = printed, table
	in, err := v.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	v.start()
	printed.until(t, 1, "Epoch 7")
	signals := 0
	for strings.Count(table.String(), "epoch 7") < 2 && signals < 100 { // it begins after its line is passed on
		if err := v.Process.Signal(unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		signals++
		table.until(t, signals, "Evidence")
	}
	_ = in.Close()
	if code := v.wait(); code != 4 {
		t.Errorf("got exit code %d, want 4: the program's", code)
	}
	if n := strings.Count(table.String(), "epoch 7"); n != 3 {
		t.Errorf("got epoch 7 in %d of %d tables, want 3: %s", n, signals+1, table)
	}
}
