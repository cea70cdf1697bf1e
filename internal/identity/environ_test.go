package identity

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stallspan/stallspan/test/fixture"
)

// environ joins variables as the kernel does.
func environ(variables ...string) []byte { return []byte(strings.Join(variables, "\x00") + "\x00") }

func TestParseEnvironment(t *testing.T) {
	all := environ("PATH=/bin", "AWS_SECRET_ACCESS_KEY=x", "SLURM_JOB_ID=4711", "SLURM_STEP_ID=0",
		"SLURM_JOB_NAME=fine\x1b[m tune", "RANK=12", "LOCAL_RANK=4", "OTEL_SERVICE_NAME=llm", "RANK=13", "LONG="+strings.Repeat("a", 3*maxVariable),
		"OTEL_RESOURCE_ATTRIBUTES=service.version=1.2, team=a%20b%2Cc,bad=%zz,none,empty=")
	want := claims{job: "4711", step: "0", jobName: "fine[m tune", rank: "12", localRank: "4", service: "llm",
		resource: []Attribute{{"service.version", "1.2", true}, {"team", "a b,c", true}, {"empty", "", true}}}
	for name, reader := range map[string]func() claims{
		"at once":      func() claims { return parseEnvironment(bytes.NewReader(all)) },
		"byte by byte": func() claims { return parseEnvironment(iotest.OneByteReader(bytes.NewReader(all))) },
		"by halves":    func() claims { return parseEnvironment(iotest.HalfReader(bytes.NewReader(all))) },
	} {
		if diff := cmp.Diff(want, reader(), cmp.AllowUnexported(claims{})); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	for text, want := range map[string]claims{
		"":                             {},
		"RANK=1":                       {}, // cut off
		"RANK=-1\x00LOCAL_RANK=x\x00":  {},
		"RANK=12345678901\x00":         {},
		"XRANK=1\x00RANK\x00=\x00\x00": {},
		strings.Repeat("a", 2*maxVariable) + "RANK=1\x00RANK=2\x00":                          {rank: "2"},
		strings.Repeat("a", maxVariable-1) + "\x00RANK=3\x00":                                {rank: "3"},
		strings.Repeat("a", maxVariable) + "\x00RANK=4\x00":                                  {rank: "4"},
		"OTEL_RESOURCE_ATTRIBUTES=" + strings.Repeat("a=b,", maxVariable) + "\x00RANK=5\x00": {rank: "5"},
	} {
		if diff := cmp.Diff(want, parseEnvironment(strings.NewReader(text)), cmp.AllowUnexported(claims{})); diff != "" {
			t.Errorf("%.40q: -want +got\n%s", text, diff)
		}
	}
}

// A claim replaces nothing that is known from outside, and is marked.
func TestClaims(t *testing.T) {
	resource := "OTEL_RESOURCE_ATTRIBUTES=container.id=x,host.name=x,process.owner=x,K8s.pod.uid=x," +
		"slurm.job.id=8,systemd.unit.name=x,service.version=2,Odd Key=x,k8s.pod.name=mine,k8s.node.name=n1," +
		strings.Repeat("k", 129) + "=x,=x"
	for name, test := range map[string]struct {
		cgroup  string
		environ []byte
		want    []Attribute // without program and owner
	}{
		"no job": {"/", environ("SLURM_JOB_ID=9", "SLURM_STEP_ID=1", "SLURM_JOB_NAME=n", "RANK=0", "LOCAL_RANK=1",
			"OTEL_SERVICE_NAME=s", resource), []Attribute{{"nv.dl.local_rank", "1", true}, {"nv.dl.rank", "0", true},
			{"service.name", "s", true}, {"service.version", "2", true}, {"slurm.job.id", "9", true},
			{"slurm.job.name", "n", true}, {"slurm.step.id", "1", true}}},
		"a rank by resource":   {"/", environ("OTEL_RESOURCE_ATTRIBUTES=nv.dl.rank=7"), []Attribute{{"nv.dl.rank", "7", true}}},
		"a step without a job": {"/", environ("SLURM_STEP_ID=1"), nil},
		"another job": {"/slurm/uid_1/job_5/step_0", environ("SLURM_JOB_ID=9", "SLURM_STEP_ID=1", "SLURM_JOB_NAME=n"),
			[]Attribute{{"slurm.job.id", "5", false}, {"slurm.step.id", "0", false}}},
		"the same job": {"/slurm/uid_1/job_5/step_0", environ("SLURM_JOB_ID=5", "SLURM_STEP_ID=1", "SLURM_JOB_NAME=n"),
			[]Attribute{{"slurm.job.id", "5", false}, {"slurm.job.name", "n", true},
				{"slurm.step.id", "0", false}}},
		"a pod": {"/kubepods/pod" + podA + "/" + idA, environ(resource, "OTEL_SERVICE_NAME=s"), []Attribute{
			{"container.id", idA, false}, {"k8s.node.name", "n1", true}, {"k8s.pod.name", "mine", true},
			{"k8s.pod.uid", podA, false}, {"service.name", "s", true}, {"service.version", "2", true}}},
		"with its own UID": {"/kubepods/pod" + podA, environ("OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=a,k8s.pod.uid=" + podA),
			[]Attribute{{"k8s.pod.name", "a", true}, {"k8s.pod.uid", podA, false}}},
		"with another's UID": {"/kubepods/pod" + podA, environ("OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=a,k8s.pod.uid=other"),
			[]Attribute{{"k8s.pod.uid", podA, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			root := machine(t)
			program(t, root, 7, 5, test.cgroup, "/x", 0)
			fixture.Write(t, root, "proc/7/environ", test.environ)
			f := New(root, Options{})
			defer f.Close()
			f.Of(7)
			waitAll(f)
			got := f.Of(7).Attributes
			var rest []Attribute
			for _, a := range got {
				if a.Key != "process.owner" && a.Key != "process.executable.name" {
					rest = append(rest, a)
				}
			}
			if diff := cmp.Diff(test.want, rest); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// A process that starts another program has another environment.
func TestEnvironmentOfTheNextProgram(t *testing.T) {
	root := machine(t)
	f := New(root, Options{})
	defer f.Close()
	for i, want := range []string{"1", "2"} {
		program(t, root, 7, 5, "/", fmt.Sprintf("/bin/p%d", i), 0)
		fixture.Write(t, root, "proc/7/environ", environ("RANK="+want))
		for range 2 {
			f.Of(7)
			waitAll(f)
		}
		if got := f.Of(7); !has(got, "nv.dl.rank", want, true) {
			t.Errorf("got %+v, want rank %s", got, want)
		}
		f.known[7].again = time.Time{}
	}
}

// During execve(2) the environment is empty. It is read again for a while.
func TestEnvironmentAfterAWhile(t *testing.T) {
	root := machine(t)
	program(t, root, 7, 5, "/", "/x", 0)
	fixture.Write(t, root, "proc/7/environ", nil)
	f := New(root, Options{})
	defer f.Close()
	for i, want := range []bool{false, true, true} {
		f.Of(7)
		waitAll(f)
		e := f.known[7]
		if got := e.claims != nil; got != want {
			t.Errorf("reading %d: got claims %v, want %v", i, got, want)
		}
		fixture.Write(t, root, "proc/7/environ", environ("RANK=1"))
		e.again = time.Time{}
	}
	if got := f.known[7].claims.rank; got != "1" {
		t.Errorf("got rank %q, want 1", got)
	}
}

func TestAttributesAreBounded(t *testing.T) {
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "key%d=%s,", i, strings.Repeat("é", 100))
	}
	root := machine(t)
	program(t, root, 7, 5, "/slurm/uid_1/job_5/step_0", "/x", 0)
	fixture.Write(t, root, "proc/7/environ", environ("OTEL_RESOURCE_ATTRIBUTES="+many.String()[:maxVariable-100]))
	f := New(root, Options{})
	defer f.Close()
	f.Of(7)
	waitAll(f)
	got := f.Of(7)
	if len(got.Attributes) != maxAttributes {
		t.Errorf("got %d attributes, want %d", len(got.Attributes), maxAttributes)
	}
	jobs := 0
	for _, a := range got.Attributes {
		if len(a.Value) > maxValue || !utf8.ValidString(a.Value) {
			t.Errorf("%s: got %d bytes, want at most %d of valid text", a.Key, len(a.Value), maxValue)
		}
		if a.Key == "slurm.job.id" {
			jobs++
		}
	}
	if jobs != 1 {
		t.Error("got no Slurm job, want that claims do not displace it")
	}
}

// The environment of another process, as the kernel shows it.
func TestRealEnvironment(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "RANK=3", "SECRET=x", "OTEL_SERVICE_NAME=real"}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("needs cat: %v", err)
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	want := claims{rank: "3", service: "real"}
	got, some := environment("/proc", cmd.Process.Pid)
	for end := time.Now().Add(time.Minute); !some && time.Now().Before(end); {
		got, some = environment("/proc", cmd.Process.Pid) // it was between two programs
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(claims{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got, _ := environment("/proc", -1); got.rank != "" || got.resource != nil {
		t.Errorf("no process: got %+v, want nothing", got)
	}
}

// A process that does not let its memory be read holds up no answer, no other user's claims, and no end for long.
func TestMemoryThatWaits(t *testing.T) {
	root := machine(t)
	program(t, root, 7, 5, "/system.slice/a.service", "/x", 0)
	program(t, root, 8, 5, "/system.slice/b.service", "/x", 1000)
	fixture.Write(t, root, "proc/8/environ", environ("RANK=1"))
	path := root + "/proc/7/environ"
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skipf("needs mkfifo: %v", err)
	}
	f := New(root, Options{})
	if got := f.Of(7).Name; got != "a.service" {
		t.Errorf("got %q, want a.service", got)
	}
	var end *os.File // fails without a reader, and so shows that there is one
	for until := time.Now().Add(time.Minute); end == nil; time.Sleep(time.Millisecond) {
		var err error
		if end, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err != nil && time.Now().After(until) {
			t.Fatalf("got %v, want that the environment is read", err)
		}
	}
	defer func() { _ = end.Close(); waitAll(f) }()
	for until := time.Now().Add(time.Minute); !has(f.Of(8), "nv.dl.rank", "1", true); {
		if time.Sleep(time.Millisecond); time.Now().After(until) {
			t.Fatal("got no claims of another user, want that they do not wait")
		}
	}
	began := time.Now()
	f.Close()
	if took := time.Since(began); took > closeIn+5*time.Second {
		t.Errorf("the end took %v, want %v", took, closeIn)
	}
}

func TestReadersAreBounded(t *testing.T) {
	f := New(machine(t), Options{})
	defer f.Close()
	for i := range 3 * maxReaders {
		f.ask(process{pid: 1 << 30, start: 5}, fmt.Sprint("user ", i))
		if len(f.readers) > maxReaders {
			t.Fatalf("got %d readers, want at most %d", len(f.readers), maxReaders)
		}
	}
}

// A user who names cgroups like containers gets no further readers.
func TestReadersOfClaimedContainers(t *testing.T) {
	root := machine(t)
	f := New(root, Options{})
	defer f.Close()
	for pid, path := range []string{
		"/user.slice/user-1000.slice/user@1000.service/docker-%s.scope", "/system.slice/docker-%s.scope",
	} {
		container := strings.Repeat(fmt.Sprint(pid), 64)
		program(t, root, pid+1, 5, fmt.Sprintf(path, container), "", 1000)
		var e entry
		f.read(pid+1, "", &e)
		if want := []string{"ada", "ada " + container}[pid]; e.owner != want {
			t.Errorf("%s: got the reader of %q, want that of %q", path, e.owner, want)
		}
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add(environ("RANK=1", "OTEL_RESOURCE_ATTRIBUTES=a=b%20,k8s.pod.name=x", "SLURM_JOB_ID=5"))
	f.Add([]byte("=\x00RANK\x00RANK="))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := parseEnvironment(bytes.NewReader(text))
		again := parseEnvironment(iotest.OneByteReader(bytes.NewReader(text)))
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(claims{})); diff != "" {
			t.Errorf("it depends on how it is read:\n%s", diff)
		}
		var l list
		l.claims(&c, &place{pod: podA})
		for _, a := range l.sorted() {
			value := clean(a.Value, maxValue)
			if !a.Claimed || len(a.Key) > maxKey || a.Value == "" || a.Value != value {
				t.Errorf("got %+v from %q", a, text)
			}
		}
	})
}
