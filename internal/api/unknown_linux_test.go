package api

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

const (
	// serving makes TestServing a server on the socket that it names.
	serving = "STALLSPAN_TEST_SERVING"
	// unknown makes TestUnknown the program of a caller that the server does not know.
	unknown = "STALLSPAN_TEST_UNKNOWN"
)

// TestServing is the server. It prints that it serves, and does so until its input ends.
func TestServing(t *testing.T) {
	path := os.Getenv(serving)
	if path == "" {
		t.Skip("the program of another user, for TestUnknownInNamespaces")
	}
	s := serve(t, func(s *Server) {
		s.With(Events{Board: &alert.Board{}}).Keeping(&kept{}).Scraping(Scraped{All: text("all"), Machine: text("machine")})
	})
	for name, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(s.path, path); err != nil {
		t.Fatal(err)
	}
	begun, err := s.Begin(t.Context(), Announcement{Kind: window.Custom, Name: "secret"})
	fmt.Println(begun.ID, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// text is a page with a text.
func text(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// TestUnknown prints what it gets, with the ID of a window of the server's.
func TestUnknown(t *testing.T) {
	id, path, _ := strings.Cut(os.Getenv(unknown), " ")
	if path == "" {
		t.Skip("the program of another user, for TestUnknownInNamespaces")
	}
	client := patient(path)
	got := func(method, path string, body any) string {
		answer, err := client.call(t.Context(), method, path, body)
		switch refused, ok := err.(*Error); { //nolint:errorlint // call wraps none
		case ok:
			return strconv.Itoa(refused.Status)
		case err != nil:
			return err.Error()
		}
		return fmt.Sprintf("ok secret %v", strings.Contains(string(answer), "secret"))
	}
	fmt.Println("process", got(http.MethodPost, "/v1/windows", Announcement{Kind: window.Custom, PID: os.Getpid()}))
	fmt.Println("path", got(http.MethodPost, "/v1/windows", Announcement{Kind: window.Custom, Path: "/etc/shadow"}))
	fmt.Println("list", got(http.MethodGet, "/v1/windows", nil))
	fmt.Println("read", got(http.MethodGet, "/v1/windows/"+id, nil))
	fmt.Println("history", got(http.MethodGet, "/v1/history", nil))
	answer, _ := client.call(t.Context(), http.MethodGet, "/metrics", nil)
	fmt.Printf("metrics %s\n", answer)
	count := 0
	for ; count < windows.MaxOpen*3/4; count++ {
		if _, err := client.Begin(t.Context(), Announcement{Kind: window.Custom}); err != nil {
			break
		}
	}
	fmt.Println("windows", count)
	fmt.Println("end", got(http.MethodPost, "/v1/windows/"+id+"/end", nil))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// unknownLines are the lines that TestUnknown prints.
const unknownLines = 8

// A server in a namespace of processes of its own, such as a pod's, sees no process outside. They are one client, which
// has a share and no right over others. Those in its namespace keep their rights.
func TestUnknownInNamespaces(t *testing.T) {
	path := filepath.Join(folder(t), "l")
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	lines, unshare := within(t, []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}, nil, "TestServing",
		serving, path, 1)
	id, failed, _ := strings.Cut(lines[0], " ")
	if failed != "<nil>" {
		t.Skipf("needs the right to make a pid namespace: %s", lines)
	}
	socket, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	const share = windows.MaxOpen / 4
	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	const refused = "process 403, path 403, list ok secret false, read 403, history 403, metrics machine, "
	for _, c := range []struct {
		name       string
		attributes syscall.SysProcAttr
		want       string
	}{
		{"root outside", syscall.SysProcAttr{}, refused + fmt.Sprintf("windows %d, end 403", share)},
		{"root in another namespace", syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, refused + "windows 0, end 403"},
		{"a user outside", syscall.SysProcAttr{Credential: other}, refused + "windows 0, end 403"},
	} {
		lines, _ := within(t, nil, &c.attributes, "TestUnknown", unknown, id+" "+socket, unknownLines)
		if got := strings.Join(lines, ", "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", unshare))
	if err != nil {
		t.Fatal(err)
	}
	inside := []string{"nsenter", "--target", strings.TrimSpace(string(children)), "--pid", "--mount"}
	for _, c := range []struct {
		name string
		more []string
		want string
	}{
		{"a user inside", []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"},
			"process ok secret false, path ok secret false, list ok secret false, read 403, history ok secret false, " +
				fmt.Sprintf("metrics machine, windows %d, end 403", share-2)},
		{"root inside", nil, "process ok secret false, path ok secret false, list ok secret true, read ok secret true, " +
			fmt.Sprintf("history ok secret false, metrics all, windows %d, end ok secret true", windows.MaxOpen-2*share-3)},
	} {
		lines, _ := within(t, append(inside, c.more...), nil, "TestUnknown", unknown, id+" "+socket, unknownLines)
		if got := strings.Join(lines, ", "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
