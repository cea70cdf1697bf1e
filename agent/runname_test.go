package agent

import (
	"regexp"
	"testing"
)

func TestNameOf(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string // a regexp
	}{
		{[]string{"/opt/serve", "--port", "1"}, "serve"},
		{[]string{"python3", "train.py"}, "train.py"},
		{[]string{"/usr/bin/python3.11", "-u", "/work/train.py", "--data", "x.sh"}, "train.py"},
		{[]string{"python", "-m", "models.train", "--lr", "1"}, "models.train"},
		{[]string{"python", "-m", "torch.distributed.run", "--nproc", "4", "train.py"}, "train.py"},
		{[]string{"env", "A=1", "bash", "run.sh", "-c", "x.py"}, "run.sh"},
		{[]string{"bash", "-c", "cd /work && exec python3 /a/train.py --lr 1"}, "train.py"},
		{[]string{"nice", "bash", "-lc", "for i in 1 2; do ./prepare.sh; done; python3 train.py"}, "prepare.sh"},
		{[]string{"bash", "-c", "echo Epoch 1"}, "bash -c [0-9a-f]{8}"},
		{[]string{"python3", "-c", "import train"}, "python -c [0-9a-f]{8}"},
		{[]string{"perl", "-e", "print 1"}, "perl -e [0-9a-f]{8}"},
		{[]string{"bash", "-c"}, "bash"},
		{[]string{"gzip", "-c", "x"}, "gzip"},
		{[]string{"bash", "--rc"}, "bash"},
	} {
		if got := nameOf(c.argv); !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
			t.Errorf("%q: got %q, want %s", c.argv, got, c.want)
		}
	}
	if one, other := nameOf([]string{"sh", "-c", "a"}), nameOf([]string{"sh", "-c", "b"}); one == other {
		t.Errorf("got %q for two programs, want two names", one)
	}
}
