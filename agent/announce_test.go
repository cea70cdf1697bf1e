package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// announce is a program that announces its windows through the API.
func announce() int {
	ctx := context.Background()
	client := api.NewClient(os.Getenv(api.SocketVariable))
	epoch := 3
	begin := func(a api.Announcement) api.Begun {
		begun, err := client.Begin(ctx, a)
		if err != nil {
			fmt.Println(err)
			os.Exit(9)
		}
		return begun
	}
	first := begin(api.Announcement{Kind: window.Epoch, Epoch: &epoch})
	begin(api.Announcement{Kind: window.Custom, Name: "never ended"})
	time.Sleep(50 * time.Millisecond)
	if _, err := client.End(ctx, first.ID); err != nil {
		fmt.Println(err)
		return 9
	}
	begin(api.Announcement{Kind: window.ModelLoad, Model: "cut", Traceparent: os.Getenv("TRACEPARENT")})
	fmt.Println(os.Getenv("TRACEPARENT"))
	fmt.Println(first.Traceparent)
	return 0
}

// announced runs a copy of the test's program that announces windows.
func announced(t *testing.T, args ...string) *invocation {
	t.Helper()
	return stallspan(t, append(append([]string{"run"}, args...), "--", "env", actAs+"=announcer", os.Args[0])...)
}

func TestAnnouncedWindows(t *testing.T) {
	v := announced(t, "--report", "/dev/stderr")
	const trace = "0af7651916cd43dd8448eb211c80319c"
	v.Env = append(v.Env, "TRACEPARENT=00-"+trace+"-b7ad6b7169203331-01")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, v.out.String(), v.err.String())
	}
	for _, line := range strings.Split(strings.TrimSpace(v.out.String()), "\n") {
		if !strings.HasPrefix(line, "00-"+trace+"-") {
			t.Errorf("traceparent %q", line)
		}
	}
	_, text, _ := strings.Cut(v.err.String(), "\n{\n")
	d := parseReport(t, []byte("{"+text))
	if len(d.Windows) != 3 {
		t.Fatalf("windows: %s", v.err.String())
	}
	for i, want := range []struct {
		label      string
		unfinished bool
	}{{"epoch 3", false}, {"custom never ended", true}, {"model_load cut", true}} {
		w := d.Windows[i]
		if w.label() != want.label || w.Unfinished != want.unfinished || w.Source != "announced" {
			t.Errorf("window %d is %s, unfinished %v, %s", i, w.label(), w.Unfinished, w.Source)
		}
	}
	if w := d.Windows[0]; w.Duration < 0.05 {
		t.Errorf("epoch 3 took %v s", w.Duration)
	}
}

func TestTraceparentIsMadeUp(t *testing.T) {
	v := stallspan(t, "run", "--", "sh", "-c",
		"echo $TRACEPARENT; test -S $STALLSPAN_SOCKET && stat -c %a $(dirname $STALLSPAN_SOCKET)")
	v.Env = append(v.Env, "TRACEPARENT=nonsense")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	parent, mode, _ := strings.Cut(v.out.String(), "\n")
	if len(parent) != 55 || !strings.HasPrefix(parent, "00-") || mode != "700\n" {
		t.Errorf("printed %q", v.out.String())
	}
}

// postsJSON lets a Python program call the API without the package.
const postsJSON = `
import http.client, json, os, socket
def post(path, body):
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["STALLSPAN_SOCKET"])
    c = http.client.HTTPConnection("localhost")
    c.sock = s
    c.request("POST", path, json.dumps(body))
    return json.load(c.getresponse())
`

// A framework prints its epochs although a callback announces them. They are counted once.
func TestAnnouncedEpochsReplacePrintedOnes(t *testing.T) {
	t.Parallel()
	d := reported(t, postsJSON+`
for epoch in (1, 2):
    print("Epoch %d/2" % epoch, flush=True)
    time.sleep(0.3)  # the line is read before the window is announced
    id = post("/v1/windows", {"kind": "epoch", "epoch": epoch})["id"]
    time.sleep(0.4)
    post("/v1/windows/%s/end" % id, {})
`)
	checkWindows(t, d, "epoch 1", "epoch 2")
}

// A load that a program announces, and prints under another name or without one, is one window. One that it prints at
// another time is another load.
func TestAnnouncedLoadsReplacePrintedOnes(t *testing.T) {
	t.Parallel()
	d := reported(t, postsJSON+`
print("Loading model", flush=True)
time.sleep(0.3)  # the line is read before the window is announced
id = post("/v1/windows", {"kind": "model_load", "model": "announced"})["id"]
print("Loading weights from /srv/w.gguf", flush=True)
time.sleep(0.3)
post("/v1/windows/%s/end" % id, {})
time.sleep(0.2)
print("Model loaded in 0.8 s", flush=True)
time.sleep(0.2)
print("Loading model 'draft'", flush=True)
time.sleep(0.3)
print("Successfully loaded 'draft'", flush=True)
time.sleep(0.2)
`)
	checkWindows(t, d, "model_load announced", "model_load draft")
}
