package agent

import (
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
)

// script runs a shell script in which $stallspan is the program.
func script(t *testing.T, text string) *invocation {
	t.Helper()
	v := stallspan(t)
	v.Path, v.Args = "/bin/sh", []string{"sh", "-c", `stallspan="env ` + actAs + `=stallspan ` + os.Args[0] + `"` + "\n" +
		text}
	return v
}

// listener is an agent that records its requests.
type listener struct {
	path string

	mu        sync.Mutex
	announced []api.Announcement
	ends      []string
	said      string // of an end, instead of what is usual
	body      string // of the last end
}

func listen(t *testing.T) *listener {
	t.Helper()
	dir, err := os.MkdirTemp("", "st") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &listener{path: filepath.Join(dir, "s")}
	socket, err := net.Listen("unix", l.path)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/windows", l.begin)
	mux.HandleFunc("POST /v1/windows/{id}/end", l.end)
	server := &http.Server{Handler: mux}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(socket)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return l
}

const itsSpan = "00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01"

func (l *listener) begin(w http.ResponseWriter, r *http.Request) {
	var a api.Announcement
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.announced = append(l.announced, a)
	_ = json.NewEncoder(w).Encode(api.Begun{ID: "id" + strconv.Itoa(len(l.announced)), Traceparent: itsSpan})
}

func (l *listener) end(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, r.PathValue("id"))
	body, _ := io.ReadAll(r.Body)
	l.body = string(body)
	usual := `{"kind":"epoch","epoch":3,"duration_s":4.8,"verdict":"storage_bound","slow":true,"finding":"It \u001b[31mwaited."}` + "\n"
	_, _ = io.WriteString(w, cmp.Or(l.said, usual))
}

// lastBody is the body of the last end.
func (l *listener) lastBody() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.body
}

// only returns the single announcement, after the program has exited.
func (l *listener) only(t *testing.T) api.Announcement {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.announced) != 1 {
		t.Fatalf("announced: %+v", l.announced)
	}
	return l.announced[0]
}

func TestMarkBeginSaysWhatItWasGiven(t *testing.T) {
	t.Parallel()
	l := listen(t)
	v := script(t, `echo $$; cd /usr; export TRACEPARENT=`+itsSpan+`
		$stallspan mark begin --kind epoch --epoch 0 --name n --model m --run r --path lib/../share --gpu A --gpu B \
			--attribute k=v=w --attribute e=
		true`)
	v.Env = append(v.Env, api.SocketVariable+"="+l.path)
	if code := v.run(); code != 0 || v.err.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	shell, id, _ := strings.Cut(v.out.String(), "\n")
	if id != "id1\n" {
		t.Errorf("printed %q", id)
	}
	a := l.only(t)
	if a.Kind != "epoch" || a.Epoch == nil || *a.Epoch != 0 || a.Name != "n" || a.Model != "m" || a.Run != "r" ||
		a.Path != "/usr/share" ||
		strings.Join(a.GPUIDs, " ") != "A B" || len(a.Attributes) != 2 || a.Attributes["k"] != "v=w" ||
		a.Traceparent != itsSpan {
		t.Errorf("announced %+v", a)
	}
	if strconv.Itoa(a.PID) != shell {
		t.Errorf("pid %d, and the shell's is %s", a.PID, shell)
	}
}

func TestMarkBeginGivenMore(t *testing.T) {
	t.Parallel()
	l := listen(t)
	v := stallspan(t, "mark", "begin", "--kind", "custom", "--pid", strconv.Itoa(os.Getpid()), "--traceparent", "given")
	v.Env = append(v.Env, api.SocketVariable+"="+l.path, "TRACEPARENT=nonsense")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	if a := l.only(t); a.PID != os.Getpid() || a.Traceparent != "given" || a.Epoch != nil {
		t.Errorf("announced %+v", a)
	}
}

func TestMarkEnd(t *testing.T) {
	t.Parallel()
	l := listen(t)
	for args, want := range map[string]string{
		"mark end abc":        "epoch 3: 4.8 s, storage_bound SLOW. It ?[31mwaited.\n",
		"mark end --failed x": "epoch 3: 4.8 s, storage_bound SLOW. It ?[31mwaited.\n",
		"mark end --json abc": `{"kind":"epoch","epoch":3,"duration_s":4.8,"verdict":"storage_bound","slow":true,"finding":"It \u001b[31mwaited."}` + "\n",
	} {
		v := stallspan(t, strings.Fields(args)...)
		v.Env = append(v.Env, api.SocketVariable+"="+l.path)
		if code := v.run(); code != 0 || v.out.String() != want || v.err.Len() > 0 {
			t.Errorf("%s: exit code %d: %q %q", args, code, v.out.String(), v.err.String())
		}
		if failed, body := strings.Contains(args, "--failed"), l.lastBody(); (body == `{"failed":true}`) != failed ||
			!failed && body != "" {
			t.Errorf("%s: said %q", args, body)
		}
	}
	if len(l.ends) != 3 {
		t.Errorf("ended %v", l.ends)
	}
	l.mu.Lock()
	l.said = `{"kind":"epoch","epoch":3,"duration_s":4.8,"verdict":"storage_bound","remedy":"Read ahead."}`
	l.mu.Unlock()
	v := stallspan(t, "mark", "end", "abc")
	v.Env = append(v.Env, api.SocketVariable+"="+l.path)
	if code := v.run(); code != 0 || strings.Count(v.out.String(), "\n") != 1 ||
		v.errorLine() != "stallspan: try: Read ahead." {
		t.Errorf("exit code %d: got %q and %q, want one line, and the remedy as an error", code, &v.out, &v.err)
	}
}

// A window whose id could not be printed is ended at once, as no other call could end it.
func TestMarkBeginIntoAFullDisk(t *testing.T) {
	t.Parallel()
	l := listen(t)
	v := script(t, `$stallspan mark begin --kind epoch >/dev/full`)
	v.Env = append(v.Env, api.SocketVariable+"="+l.path)
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.errorLine(), "no space left on device") {
		t.Errorf("exit code %d", code)
	}
	if strings.Join(l.ends, " ") != "id1" {
		t.Errorf("ended %v", l.ends)
	}
}

// A script with the real API.
func TestMarkInARun(t *testing.T) {
	t.Parallel()
	report := filepath.Join(t.TempDir(), "report.json")
	v := script(t, `$stallspan run --report `+report+` -- sh -c '
		id=$('"$stallspan"' mark begin --kind epoch --epoch 3)
		sleep 0.05
		'"$stallspan"' mark end "$id"
		'"$stallspan"' mark end "$id"; echo "twice $?"
		'"$stallspan"' ls --id "$id"; echo "listed $?"
		'"$stallspan"' ls --id "$id" --json | grep -c "\"id\": *\"$id\""
		'"$stallspan"' ls --id never; echo "unlisted $?"
		'"$stallspan"' mark end never; echo "never $?"
		'"$stallspan"' mark begin --kind epoch --traceparent x; echo "traceparent $?"
		'"$stallspan"' mark run --kind model_load --model m -- sh -c "exit 5"; echo "run $?"
		'"$stallspan"' mark run --kind model_load --model none -- /no/such/program; echo "none $?"
	'`)
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	line, codes, _ := strings.Cut(v.out.String(), "\n")
	codes, listed := strings.CutPrefix(codes, "twice 1\n"+line+"\n")
	if try, after, ok := strings.Cut(codes, "\n"); ok && strings.HasPrefix(try, "Try: ") { // of a window above 200 ms
		codes = after
	}
	const rest = "listed 0\n1\nunlisted 1\nnever 1\ntraceparent 1\nrun 5\nnone 127\n"
	if !strings.HasPrefix(line, "epoch 3: ") || !listed || codes != rest {
		t.Errorf("printed %s", v.out.String())
	}
	for _, want := range []string{"has ended already: see stallspan ls --id ", `with the id "never"`, "stallspan: no open window has that id",
		`"x" is not a traceparent`,
		"stallspan: load m (part): ", "stallspan: /no/such/program: not found"} {
		if !strings.Contains(v.err.String(), want) {
			t.Errorf("%q is not in %s", want, v.err.String())
		}
	}
	d := readReport(t, report)
	for i, want := range []string{"epoch 3", "model_load m", "model_load none"} {
		if i >= len(d.Windows) || d.Windows[i].label() != want || d.Windows[i].Unfinished != (i > 0) {
			t.Fatalf("window %d is not %s: %+v", i, want, d.Windows)
		}
	}
	if len(d.Windows) != 3 || d.Windows[0].Duration < 0.05 {
		t.Errorf("got %+v, want three windows, the first one of 50 ms", d.Windows)
	}
}

// TestMarkBeginOfTheMissing: a process or a GPU that does not exist is a problem at the begin, not at the end.
func TestMarkBeginOfTheMissing(t *testing.T) {
	t.Parallel()
	v := script(t, `$stallspan run -- sh -c '
		'"$stallspan"' mark begin --kind epoch --gpu nosuch >/dev/null
		'"$stallspan"' mark begin --kind epoch --pid 4194303 >/dev/null
		'"$stallspan"' mark begin --kind epoch --pid 4194304 >/dev/null # of the whole machine
	'`)
	v.run()
	said := ""
	for line := range strings.Lines(v.err.String()) { // and not in the table
		if strings.HasPrefix(line, "stallspan: ") {
			said += line
		}
	}
	for _, want := range []string{"process 4194303 does not exist", "nosuch"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	if strings.Contains(said, "4194304") {
		t.Errorf("got %q, want nothing of the number that no process has", said)
	}
}

func TestMarkWithoutAnAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none")
	noAgent := "no agent answers at " + path +
		": start stallspan agent or a Collector with the receiver stallspan, or set STALLSPAN_SOCKET to its socket"
	for args, want := range map[string]string{
		"mark begin --kind epoch": noAgent,
		"mark end abc":            noAgent,
		"page":                    noAgent,
	} {
		v := stallspan(t, strings.Fields(args)...)
		v.Env = append(v.Env, api.SocketVariable+"="+path)
		if code := v.run(); code != cli.ExitFailed || v.errorLine() != "stallspan: "+want || v.out.Len() > 0 {
			t.Errorf("%s: exit code %d: %q", args, code, v.out.String())
		}
	}
}

func TestMarkUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"mark begin":                            "--kind is missing: give model_load, epoch, checkpoint, steps or custom",
		"mark begin --kind epcoh":               `--kind "epcoh" is unknown`,
		"mark begin --kind epoch --pid 0":       "--pid 0 is not a process",
		"mark begin --kind epoch --epoch x":     "see stallspan mark begin --help",
		"mark begin --kind epoch --attribute k": `--attribute "k" is not a pair: give key=value`,
		"mark begin --kind epoch sleep":         "mark run runs a program",
		"mark end":                              "mark end needs the id",
		"mark end a b":                          "mark end needs the id",
		"mark run --kind epoch":                 "mark run needs a program",
		"mark run -- true":                      "--kind is missing",
		"mark run --kind epcoh -- true":         `--kind "epcoh" is unknown`,
		"mark stop":                             `unknown command "stop": see stallspan mark --help`,
	} {
		v := stallspan(t, strings.Fields(args)...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), want) {
			t.Errorf("%s: exit code %d: %s", args, code, v.err.String())
		}
	}
}
