package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/hang"
)

var (
	program = flag.String("stallspan", "", "the built `program`; without it, it is built")
	all     = flag.Bool("all", false, "try each fault of each part: takes five minutes")
	update  = flag.Bool("update", false, "write the results of all into docs/internals/faults.md")
)

const (
	clientVariable = "STALLSPAN_FAULTS_CLIENT" // the socket, for a copy of this binary that is the other user's client
	otherUser      = 65534
	calls          = 7 // the median counts
	tries          = 4 // of that, on a busy machine
	quick          = 100 * time.Millisecond
	endTime        = 20 * time.Second
	slack          = 2 * time.Second // to start and to reap a process on a busy machine
)

// The faults.
const (
	hangs   = "hang"
	killed  = "killed"
	refused = "refused"
	slow    = "slow"
)

var faults = []string{hangs, killed, refused, slow}

func TestMain(m *testing.M) {
	if socket := os.Getenv(clientVariable); socket != "" {
		if err := callAsOther(socket); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// latencies are how long begins and ends of windows took.
type latencies struct{ Begin, End []time.Duration }

func callAsOther(socket string) error {
	var l latencies
	for range calls {
		began := time.Now()
		id, err := begin(socket, api.Announcement{Kind: "custom", Name: "other"})
		if err != nil {
			return err
		}
		l.Begin = append(l.Begin, time.Since(began))
		time.Sleep(100 * time.Millisecond)
		began = time.Now()
		if _, err := end(socket, id); err != nil {
			return err
		}
		l.End = append(l.End, time.Since(began))
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}

// call makes a call of the API. The client of package api refuses a server that runs as another user than root.
func call(socket, method, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: endTime}
	request, err := http.NewRequestWithContext(context.Background(), method, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return answer, err
}

func begin(socket string, a api.Announcement) (id string, err error) {
	answer, err := call(socket, http.MethodPost, "/v1/windows", a)
	if err != nil {
		return "", err
	}
	var begun struct{ ID string }
	err = json.Unmarshal(answer, &begun)
	return begun.ID, err
}

func end(socket, id string) (report []byte, err error) {
	return call(socket, http.MethodPost, "/v1/windows/"+id+"/end", struct{}{})
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// agent is a running agent, and what the faults change.
type agent struct {
	t      *testing.T
	cmd    *exec.Cmd
	folder string
	socket string
	out    bytes.Buffer
	gpu    *fixture.Player
}

// trial is how an agent is started, and what happens to it.
type trial struct {
	config      string   // lines of YAML
	environment []string // of the agent
	helpers     bool     // start it as a user with the capabilities for helpers
	inject      func(a *agent)
}

// parts return the trial of a fault.
var parts = []struct {
	name string
	make func(t *testing.T, fault string) trial
}{
	{"process", processTrial}, {"reader", readerTrial}, {"GPU", gpuTrial}, {"driver-wide call", driverTrial},
	{"disk of the history", diskTrial}, {"backend", backendTrial}, {"kubelet", kubeletTrial}, {"smartctl", smartctlTrial},
}

// A process of the other user hangs in one way or the other, ends in its window, is unknown, or hangs for a moment.
func processTrial(t *testing.T, fault string) trial {
	return trial{inject: func(a *agent) {
		announce := func(pid int) {
			_, _ = begin(a.socket, api.Announcement{Kind: "epoch", PID: pid})
		}
		switch fault {
		case hangs:
			announce(hang.Start(t, hang.Options{How: hang.Memory, Spins: true}).PID)
			announce(hang.Start(t, hang.Options{How: hang.Exec}).PID)
		case killed:
			pid, end := fixture.Sleeper(t)
			announce(pid)
			end()
		case refused:
			announce(1 << 22)
		case slow:
			announce(hang.Start(t, hang.Options{How: hang.Exec, Limit: time.Second}).PID)
		}
	}}
}

// readerTrial stops the helper that reads, kills it, starts the agent without one, or stops it again and again.
func readerTrial(t *testing.T, fault string) trial {
	return trial{helpers: fault != refused, inject: func(a *agent) {
		if fault == refused {
			return
		}
		reader := a.helper()
		signal := func(s syscall.Signal) { _ = syscall.Kill(reader, s) }
		switch fault {
		case hangs:
			signal(syscall.SIGSTOP)
			t.Cleanup(func() { signal(syscall.SIGCONT) })
		case killed:
			signal(syscall.SIGKILL)
		case slow:
			done := make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					signal(syscall.SIGSTOP)
					select {
					case <-done:
						signal(syscall.SIGCONT)
						return
					case <-time.After(90 * time.Millisecond):
					}
					signal(syscall.SIGCONT)
					time.Sleep(10 * time.Millisecond)
				}
			}()
			t.Cleanup(func() { close(done); <-ended })
		}
	}}
}

const twoGPUs = "gpu 0\ngpu 1\n"

func gpuTrial(_ *testing.T, fault string) trial {
	return played(map[string]string{
		hangs: "hang gpu=0\n", killed: "lost 0\n", refused: "error gpu=0 code=4 call=nvmlDeviceGetSamples\n",
		slow: "hang gpu=0 seconds=1\n",
	}[fault])
}

func driverTrial(_ *testing.T, fault string) trial {
	return played(map[string]string{
		hangs: "hang call=nvmlDeviceGetCount_v2\nhang call=nvmlEventSetWait_v2\n", killed: "init_error 9\n",
		refused: "error call=nvmlDeviceGetCount_v2 code=4\n", slow: "hang call=nvmlDeviceGetCount_v2 seconds=1\n",
	}[fault])
}

// played is a trial in which the driver's stand-in plays more.
func played(text string) trial {
	return trial{inject: func(a *agent) { a.gpu.Write(twoGPUs + text) }}
}

// disk is a file system in which files cannot be found for a while, as on a server that does not respond. As there, who
// waits can be killed.
type disk struct {
	holds    atomic.Bool
	delay    time.Duration // 0 until it is released
	released chan struct{}
}

// wait waits as long as the disk does.
func (d *disk) wait(ctx context.Context) syscall.Errno {
	if !d.holds.Load() {
		return 0
	}
	var over <-chan time.Time
	if d.delay > 0 {
		over = time.After(d.delay)
	}
	select {
	case <-ctx.Done():
		return syscall.EINTR
	case <-d.released:
	case <-over:
	}
	return 0
}

// diskNode is a file or folder of a disk.
type diskNode struct {
	*fs.LoopbackNode
	disk *disk
}

func (n *diskNode) WrapChild(_ context.Context, of fs.InodeEmbedder) fs.InodeEmbedder {
	if node, ok := of.(*fs.LoopbackNode); ok {
		return &diskNode{node, n.disk}
	}
	return of
}

func (n *diskNode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if err := n.disk.wait(ctx); err != 0 {
		return nil, err
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

func (n *diskNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if err := n.disk.wait(ctx); err != 0 {
		return nil, 0, err
	}
	return n.LoopbackNode.Open(ctx, flags)
}

// mountDisk mounts a disk, and returns its folder.
func mountDisk(t *testing.T, d *disk) string {
	t.Helper()
	var st syscall.Stat_t
	folder, backing := t.TempDir(), t.TempDir()
	if err := syscall.Stat(backing, &st); err != nil {
		t.Fatal(err)
	}
	root := &fs.LoopbackRoot{Path: backing, Dev: st.Dev}
	root.RootNode = &diskNode{&fs.LoopbackNode{RootData: root}, d}
	server, err := fs.Mount(folder, root.RootNode, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, Name: "hang"},
	})
	if err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	t.Cleanup(func() {
		close(d.released)
		if err := server.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// diskTrial has the history on a file system that hangs or is slow, or that is gone, or replaces its folder by a file.
func diskTrial(t *testing.T, fault string) trial {
	folder := t.TempDir()
	inject := func(*agent) {}
	switch fault {
	case hangs, slow:
		d := &disk{released: make(chan struct{})}
		if fault == slow {
			d.delay = 200 * time.Millisecond
		}
		folder = mountDisk(t, d)
		inject = func(*agent) { d.holds.Store(true) }
	case killed:
		inject = func(*agent) { _ = os.RemoveAll(folder) }
	case refused:
		inject = func(*agent) {
			_ = os.RemoveAll(folder)
			_ = os.WriteFile(folder, nil, 0o600)
		}
	}
	return trial{environment: []string{"XDG_STATE_HOME=" + folder}, inject: inject}
}

// backendTrial exports to a server that has worked before.
func backendTrial(t *testing.T, fault string) trial {
	broken := make(chan struct{})
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-broken:
		default:
			return
		}
		switch fault {
		case hangs:
			<-over
		case refused:
			w.WriteHeader(http.StatusForbidden)
		case slow:
			time.Sleep(time.Second)
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return trial{
		environment: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"},
		inject: func(*agent) {
			if close(broken); fault == killed {
				_ = server.Listener.Close()
				server.CloseClientConnections()
			}
		},
	}
}

// kubeletTrial names a kubelet that does not answer, closes each connection, is not there, or answers late and
// with nonsense.
func kubeletTrial(t *testing.T, fault string) trial {
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			switch fault {
			case refused:
				_ = conn.Close()
			case slow:
				time.AfterFunc(time.Second, func() { _, _ = conn.Write([]byte("not HTTP/2\n")); _ = conn.Close() })
			}
		}
	}()
	return trial{config: "sampling: {pod_resources: " + path + "}\n", inject: func(*agent) {
		if fault == killed {
			_ = listener.Close()
		}
	}}
}

// smartctlTrial has a smartctl that does not end, dies, refuses or is slow.
func smartctlTrial(t *testing.T, fault string) trial {
	script := map[string]string{
		hangs: "exec sleep 600", killed: "kill -9 $$", refused: "echo Permission denied >&2; exit 2",
		slow: "sleep 2; echo {}",
	}[fault]
	path := filepath.Join(t.TempDir(), "smartctl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return trial{config: "smart: {enabled: true, smartctl: " + path + "}\n", inject: func(*agent) {}}
}

// built returns the program, in a folder that other users may enter.
func built(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "stallspan-faults")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if *program != "" {
		return *program
	}
	path := filepath.Join(folder, "stallspan")
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", path, ".")
	build.Dir = "../.."
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, text)
	}
	return path
}

// start starts an agent, and returns when it serves.
func start(t *testing.T, path, library string, x *trial) *agent {
	t.Helper()
	folder, err := os.MkdirTemp("", "stallspan-faults")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	a := &agent{t: t, folder: folder, socket: filepath.Join(folder, "s.sock"), gpu: fixture.PlayGPU(t, twoGPUs)}
	config := filepath.Join(folder, "agent.yaml")
	if err := os.WriteFile(config, []byte(x.config), 0o644); err != nil {
		t.Fatal(err)
	}
	a.cmd = exec.Command(path, "agent", "--config", config)
	a.cmd.Env = append(os.Environ(), append([]string{
		"STALLSPAN_SOCKET=" + a.socket, "XDG_STATE_HOME=" + folder, "HOME=" + folder, "FAKENVML_FILE=" + a.gpu.Path,
		"LD_LIBRARY_PATH=" + filepath.Dir(library), "OTEL_EXPORTER_OTLP_ENDPOINT=",
	}, x.environment...)...)
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.out
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if x.helpers {
		if err := os.Chown(folder, otherUser, otherUser); err != nil {
			t.Fatal(err)
		}
		a.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: otherUser, Gid: otherUser}
		a.cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH}
	}
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := call(a.socket, http.MethodGet, "/v1/status", nil); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the agent does not serve: %s", &a.out)
		}
	}
	if err := errorsOf(os.Chmod(folder, 0o755), os.Chmod(a.socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	return a
}

func errorsOf(all ...error) error { return cmp.Or(all...) }

// helper returns the process that reads: the child of the keeper, which is the agent's child.
func (a *agent) helper() int {
	a.t.Helper()
	child := func(of int, role string) int {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for id := range strings.FieldsSeq(string(text)) {
				line, _ := os.ReadFile("/proc/" + id + "/cmdline")
				args := strings.Split(string(line), "\x00")
				if len(args) > 2 && args[0] == "stallspan-helper" && (args[1] == role || args[1] != "keep" && args[2] == role) {
					pid, _ := strconv.Atoi(id)
					return pid
				}
			}
		}
		return 0
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if keeper := child(a.cmd.Process.Pid, "keep"); keeper != 0 {
			if reader := child(keeper, "read"); reader != 0 {
				return reader
			}
		}
		if time.Now().After(end) {
			a.t.Fatalf("the agent has no helper: %s", &a.out)
		}
	}
}

// result is what one trial has shown.
type result struct {
	part       string
	begin, end time.Duration // medians of the other user's calls
	stop       time.Duration // from SIGTERM to the end
}

// run does one trial.
func run(t *testing.T, path, library, part string, x *trial) result {
	r := result{part: part}
	a := start(t, path, library, x)
	pid, _ := fixture.Sleeper(t)
	sent := time.Now()
	id, err := begin(a.socket, api.Announcement{Kind: "epoch", PID: pid})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	x.inject(a)

	for range tries {
		other := exec.Command("/proc/self/exe")
		other.Env = append(os.Environ(), clientVariable+"="+a.socket)
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
		other.Stderr = os.Stderr
		text, err := other.Output()
		var l latencies
		if err = errorsOf(err, json.Unmarshal(text, &l)); err != nil {
			t.Fatalf("the other user's windows: %v: %s", err, &a.out)
		}
		if r.begin, r.end = median(l.Begin), median(l.End); r.begin < quick && r.end < quick {
			break
		}
	}
	if r.begin > quick || r.end > quick {
		t.Errorf("begin and end took %v and %v in the median, want less than %v", r.begin, r.end, quick)
	}

	ending := time.Now()
	report, err := end(a.socket, id)
	if err != nil {
		t.Fatalf("the window that was open: %v: %s", err, &a.out)
	}
	var got struct {
		Duration   float64 `json:"duration_s"`
		Unfinished bool    `json:"unfinished"`
		Scope      string  `json:"scope"`
	}
	if err := json.Unmarshal(report, &got); err != nil {
		t.Fatal(err)
	}
	least, most := ending.Sub(began).Seconds(), time.Since(sent).Seconds()
	if got.Duration < least || got.Duration > most || got.Unfinished || got.Scope != "process" {
		t.Errorf("got a window of %v s of the %s, want %v to %v s of the process", got.Duration, got.Scope, least, most)
	}

	ended := make(chan error, 1)
	at := time.Now()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- a.cmd.Wait() }()
	select {
	case err = <-ended:
	case <-time.After(2 * endTime):
		_ = a.cmd.Process.Kill()
		err = <-ended
	}
	if r.stop = time.Since(at); r.stop > endTime+slack || err != nil {
		t.Errorf("the agent ended after %v with %v, want none within %v: %s", r.stop, err, endTime, &a.out)
	}
	return r
}

// TestFaults has each part fail in each way, while windows of two users are open.
func TestFaults(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for clients of two users and file systems that hang")
	}
	path, library := built(t), fixture.NVML(t)
	var results []result
	for _, part := range parts {
		for _, fault := range faults {
			if !*all && (part.name != "process" || fault != hangs) {
				continue
			}
			t.Run(part.name+" "+fault, func(t *testing.T) {
				x := part.make(t, fault)
				r := run(t, path, library, part.name, &x)
				if !t.Failed() {
					results = append(results, r)
				}
			})
		}
	}
	if *update && !t.Failed() && len(results) == len(parts)*len(faults) {
		write(t, results)
	}
}

// write writes the page.
func write(t *testing.T, results []result) {
	t.Helper()
	var b strings.Builder
	b.WriteString(`# Faults

[comment]: <> (Code generated by lab/faults with -update. DO NOT EDIT.)

Each fault has an agent of its own. A user has a window open while a part fails, and another user begins and ends seven
windows. The first one's window is exact: it lasts as long as her program says, and is about her process. The other
one's calls take less than 100 ms in the median. Then SIGTERM ends the agent within 20 s, with status 0.
On a busy machine a fault is tried up to four times: the first time that holds counts. It is not checked that the agent
called the kubelet or smartctl, and a disk whose server cannot be killed keeps the agent from ending.

` + "`make full`" + ` fails otherwise; [the test](../../lab/faults/faults_linux_test.go) says what each fault is. In each
field: ` + strings.Join(faults, ", ") + `.

| part | begin, ms | end, ms | stop, s |
|---|---|---|---|
`)
	for of := range slices.Chunk(results, len(faults)) {
		var begin, end, stop []string
		for _, r := range of {
			begin = append(begin, fmt.Sprintf("%.1f", r.begin.Seconds()*1e3))
			end = append(end, fmt.Sprintf("%.1f", r.end.Seconds()*1e3))
			stop = append(stop, fmt.Sprintf("%.1f", r.stop.Seconds()))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", of[0].part, strings.Join(begin, ", "), strings.Join(end, ", "),
			strings.Join(stop, ", "))
	}
	if err := os.WriteFile("../../docs/internals/faults.md", []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
