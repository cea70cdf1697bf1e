package procs

import "testing"

func TestChooseProcess(t *testing.T) {
	t.Parallel()
	known := map[int]Process{}
	for _, p := range []Process{
		{PID: 1, Name: "init", Program: "init"},
		{PID: 10, Parent: 1, Name: "train.py", Program: "torchrun", command: "torchrun train.py"},
		{PID: 11, Parent: 10, Name: "train.py", Program: "python3", command: "python3 train.py"},
		{PID: 12, Parent: 11, Name: "train.py", Program: "python3", command: "python3 train.py"},
		{PID: 20, Parent: 1, Name: "serve.py", Program: "python3", command: "python3 serve.py"},
		{PID: 21, Parent: 1, Name: "serve.py", Program: "python3", command: "python3 serve.py --port 2"},
		{PID: 30, Parent: 1, Name: "serve.py", Program: "sudo", command: "sudo stallspan attach serve.py"},
		{PID: 40, Parent: 1, Name: "eval.py", Program: "runuser", Foreign: true},
		{PID: 41, Parent: 40, Name: "eval.py", Program: "python3"},
		{PID: 42, Parent: 41, Name: "eval.py", Program: "python3"},
		{PID: 50, Parent: 1, Name: "other.py", Program: "python3", Foreign: true},
		{PID: 31, Parent: 30, Name: "serve.py", Program: "stallspan"},
	} {
		known[p.PID] = p
	}
	for _, test := range []struct {
		name string
		pid  int
		err  string
	}{
		{"train.py", 10, ""}, // not its workers
		{"torchrun", 10, ""},
		{"eval.py", 41, ""},  // not root's runuser
		{"other.py", 50, ""}, // which is refused or watched with a note
		{"serve.py", 0, `2 processes are called "serve.py": give the number of one: 20 (python3 serve.py), ` +
			`21 (python3 serve.py --port 2)`},
		{"stallspan", 0, `no process is called "stallspan": give its number, see ps -e`},
	} {
		found, err := choose(known, 31, test.name)
		if text := errorText(err); found.PID != test.pid || text != test.err {
			t.Errorf("%s: got process %d and %q, want %d and %q", test.name, found.PID, text, test.pid, test.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
