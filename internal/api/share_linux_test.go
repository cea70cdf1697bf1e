package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// greedy makes TestGreedy the program of an attacker, who takes what he can get from the socket that it names.
const greedy = "STALLSPAN_TEST_GREEDY"

// TestGreedy is the attacker's program. It prints what it got, and keeps it until its input ends.
func TestGreedy(t *testing.T) {
	path := os.Getenv(greedy)
	if path == "" {
		t.Skip("the program of another user, for TestShares")
	}
	client := patient(path)
	_, err := client.Begin(t.Context(), Announcement{Kind: window.Custom, PID: 1})
	fmt.Printf("process 1: %v\n", err)
	begun := 0
	for ; begun < windows.MaxOpen; begun++ {
		if _, err = client.Begin(t.Context(), Announcement{Kind: window.Custom}); err != nil {
			break
		}
	}
	fmt.Printf("windows: %d, %v\n", begun, err)
	streams := make(chan error, maxStreams)
	for range maxStreams {
		go func() {
			streams <- client.Events(t.Context(), 0, true, func([]byte) error { return nil })
		}()
	}
	refused := 0
	for ; refused < maxStreams*3/4; refused++ {
		err = <-streams
	}
	fmt.Printf("streams refused: %d, %v\n", refused, err)
	silent, open := make([]net.Conn, 2*maxConnections), 0
	for i := range silent {
		if silent[i], err = net.Dial("unix", path); err != nil {
			t.Fatal(err)
		}
	}
	for before := -1; open != before; { // a busy server may not have closed all that it refuses
		before, open = open, 0
		time.Sleep(100 * time.Millisecond)
		for _, c := range silent {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				open++
			}
		}
	}
	fmt.Printf("connections: %d\n", open)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// as runs a test of this program as another user, and returns its first lines.
func as(t *testing.T, uid uint32, test, variable, value string, lines int) []string {
	t.Helper()
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	got, _ := within(t, nil, user, test, variable, value, lines)
	return got
}

// within runs a test of this program with a command before it, and returns its first lines, and the command's process.
func within(t *testing.T, before []string, attributes *syscall.SysProcAttr, test, variable, value string,
	lines int,
) ([]string, int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as other users")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	shared := folder(t)
	if err := os.Chmod(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(shared, "test")
	if err := os.WriteFile(copied, text, 0o755); err != nil {
		t.Fatal(err)
	}
	argv := append(slices.Clone(before), copied, "-test.run", "^"+test+"$")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(os.Environ(), variable+"="+value), "/"
	cmd.SysProcAttr = attributes
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var got []string
	buffer := make([]byte, 4096)
	for all := ""; len(got) < lines; {
		n, err := out.Read(buffer)
		if err != nil {
			t.Fatalf("%s printed %q, then %v", argv, all, err)
		}
		all += string(buffer[:n])
		got = strings.Split(strings.TrimSuffix(all, "\n"), "\n")
		if !strings.HasSuffix(all, "\n") {
			got = got[:len(got)-1]
		}
	}
	return got, cmd.Process.Pid
}

// One user takes a quarter of everything at most. Others are served as before, and at once.
func TestShares(t *testing.T) {
	s := serve(t, func(s *Server) { s.With(Events{Board: &alert.Board{}}) })
	for path, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	got := as(t, 65534, "TestGreedy", greedy, s.path, 4)
	for i, want := range []string{
		"process 1: process 1 belongs to someone else",
		fmt.Sprintf("windows: %d, %d of your windows are open", windows.MaxOpen/4, windows.MaxOpen/4),
		fmt.Sprintf("streams refused: %d, %d of your programs follow", maxStreams*3/4, maxStreams/4),
		fmt.Sprintf("connections: %d", maxConnections/4-maxStreams/4),
	} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("the attacker got %q, want %q", got[i], want)
		}
	}
	start := time.Now()
	begun, err := s.Begin(t.Context(), Announcement{Kind: window.Custom})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(t.Context(), begun.ID); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("another user's window took %v, want under 2 s", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/v1/windows", http.NoBody)
	response, err := s.http.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("another user's list of windows: got %v, %v", response, err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}

// A header that does not come costs a connection for a second.
func TestSilentConnections(t *testing.T) {
	s := serve(t, nil)
	c := s.dial(t)
	start := time.Now()
	_ = c.SetReadDeadline(start.Add(4 * time.Second))
	_, err := c.Read(make([]byte, 1))
	if took := time.Since(start); err == nil || errors.Is(err, os.ErrDeadlineExceeded) || took > 3*time.Second {
		t.Errorf("got %v after %v, want the end after %v", err, took, headerTimeout)
	}
}

// prying makes TestPrying the program of another user, who tries what he can with the window that it names.
const prying = "STALLSPAN_TEST_PRYING"

// TestPrying is the other user's program. It prints what it got.
func TestPrying(t *testing.T) {
	id, path, _ := strings.Cut(os.Getenv(prying), " ")
	if path == "" {
		t.Skip("the program of another user, for TestWindowsOfOthers")
	}
	client := patient(path)
	status := func(err error) int {
		if refused := new(Error); errors.As(err, &refused) {
			return refused.Status
		}
		return 0
	}
	_, ended := client.End(t.Context(), id)
	_, failed := client.Cut(t.Context(), id, window.Outcome{Failed: true})
	_, read := client.call(t.Context(), http.MethodGet, "/v1/windows/"+id, nil)
	own, err := client.Begin(t.Context(), Announcement{Kind: window.Custom, Name: "own"})
	list, listed := client.call(t.Context(), http.MethodGet, "/v1/windows", nil)
	fmt.Printf("%d %d %d, %v, %v, secret %v, own %v\n", status(ended), status(failed), status(read), err, listed,
		strings.Contains(string(list), "secret"), strings.Contains(string(list), own.ID))
	fmt.Println(own.ID)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A user can read and end his own windows. Root and the server's user can read and end all.
func TestWindowsOfOthers(t *testing.T) {
	s := serve(t, nil)
	for path, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	begun, err := s.Begin(t.Context(), Announcement{Kind: window.Custom, Name: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	first := as(t, 65534, "TestPrying", prying, begun.ID+" "+s.path, 2)
	second := as(t, 1234, "TestPrying", prying, first[1]+" "+s.path, 2) // one plain user and another
	for _, got := range [][]string{first, second} {
		if want := "403 403 403, <nil>, <nil>, secret false, own true"; got[0] != want {
			t.Errorf("another user: got %q, want %q", got[0], want)
		}
		if _, err := s.End(t.Context(), got[1]); err != nil {
			t.Errorf("root ends the other user's window: got %v, want no error", err)
		}
	}
	// Two programs of root in namespaces of processes of their own, as in containers of a kind that is not known.
	nested := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	first, _ = within(t, nil, nested, "TestPrying", prying, begun.ID+" "+s.path, 2)
	if want := "403 403 403, <nil>, <nil>, secret false, own false"; first[0] != want {
		t.Errorf("an unknown process: got %q, want %q", first[0], want)
	}
	second, _ = within(t, nil, nested, "TestPrying", prying, first[1]+" "+s.path, 2)
	if want := "0 404 0, <nil>, <nil>, secret false, own false"; second[0] != want {
		t.Errorf("an unknown process, with the id of another one's window: got %q, want %q", second[0], want)
	}
	if _, err := s.End(t.Context(), begun.ID); err != nil {
		t.Errorf("got %v, want the window open until its owner ends it", err)
	}
}
