package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/test/fixture"
)

// otherUser is a user without rights: the last one of 16 bits, which most systems give no files.
const otherUser = 65534

// openFolder is a folder that other users may enter, unlike t.TempDir. Only root may write it.
func openFolder(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	folder, err := os.MkdirTemp("", "st")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// put writes a file of a user.
func put(t *testing.T, path, text string, uid int, mode os.FileMode) string {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, uid, uid),
		os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// asOther calls a copy of stallspan as the other user, whose own folders are below v.temp.
func asOther(t *testing.T, program string, args ...string) *invocation {
	t.Helper()
	v := stallspan(t, args...)
	v.Path = program
	v.SysProcAttr.Credential = &syscall.Credential{Uid: otherUser, Gid: otherUser}
	v.Env = append(v.Env, actAs+"=stallspan with rights", "GOCOVERDIR="+v.temp)
	if err := os.Chown(v.temp, otherUser, otherUser); err != nil {
		t.Fatal(err)
	}
	return v
}

// copyOf copies this test binary.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return put(t, path, string(text), 0, 0o755)
}

// A file with more rights than its users gives them none of these: neither what only root may read, nor to the programs
// that it starts.
func TestFileRightsAreGivenUp(t *testing.T) {
	folder := openFolder(t)
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil || st.Flags&unix.ST_NOSUID != 0 {
		t.Skipf("needs a folder for temporary files without nosuid: %v", err)
	}
	secret := put(t, filepath.Join(folder, "secret"), "root-secret-token\n", 0, 0o600)

	setuid := copyOf(t, filepath.Join(folder, "setuid"))
	if err := unix.Chmod(setuid, 0o4755); err != nil {
		t.Fatal(err)
	}
	capable := copyOf(t, filepath.Join(folder, "capable"))
	// The attribute of setcap cap_dac_read_search,cap_sys_ptrace+ep: VFS_CAP_REVISION_2 with the effective bit.
	attribute := make([]byte, 20)
	attribute[0], attribute[3] = 1, 2
	attribute[4], attribute[6] = 1<<unix.CAP_DAC_READ_SEARCH, 1<<(unix.CAP_SYS_PTRACE-16)
	if err := unix.Setxattr(capable, "security.capability", attribute, 0); err != nil {
		t.Fatal(err)
	}

	for _, program := range []string{setuid, capable} {
		v := asOther(t, program, "check", "--config", secret)
		if code := v.run(); code == 0 || strings.Contains(v.out.String()+v.err.String(), "root-secret") ||
			!strings.Contains(v.err.String(), "permission denied") {
			t.Errorf("%s reads root's file: got %d, %s%s; want permission denied", program, code, &v.out, &v.err)
		}
		if !strings.Contains(v.err.String(), "runs without them") {
			t.Errorf("%s: got %s, want a warning about its rights", program, &v.err)
		}
		v = asOther(t, program, "run", "--", "sh", "-c", "id -u; grep -E 'CapPrm|CapEff' /proc/self/status")
		if code := v.run(); code != 0 || !strings.HasPrefix(v.out.String(), fmt.Sprintf("%d\n", otherUser)) ||
			strings.Count(v.out.String(), "0000000000000000") != 2 {
			t.Errorf("%s starts a program: got %d, %s%s; want user %d without capabilities", program, code, &v.out, &v.err,
				otherUser)
		}
	}
}

// A service with ambient capabilities obeys only root: another process of its user must not get them through a file.
func TestAmbientCapabilitiesTrustRootOnly(t *testing.T) {
	folder := openFolder(t)
	program := copyOf(t, filepath.Join(folder, "stallspan"))
	config := put(t, filepath.Join(folder, "config.yaml"), "sampling: {nvml: /none}\n", otherUser, 0o644)
	secret := put(t, filepath.Join(folder, "secret"), "root-secret-token\n", 0, 0o600)
	capable := func(args ...string) *invocation {
		v := asOther(t, program, args...)
		v.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE}
		return v
	}
	v := capable("check", "--config", config)
	if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.err.String(), "belongs to user 65534") {
		t.Errorf("a config of its own user: got %d, %s; want a refusal", code, &v.err)
	}
	v = asOther(t, program, "check", "--config", config)
	if v.run(); strings.Contains(v.err.String(), "belongs to user") {
		t.Errorf("without capabilities: got %s, want no refusal", &v.err)
	}
	v = capable("replay", secret)
	if code := v.run(); code == 0 || !strings.Contains(v.err.String(), "permission denied") {
		t.Errorf("replay needs no capabilities: got %d, %s; want permission denied", code, &v.err)
	}
	v = capable("run", "--", "grep", "CapEff", "/proc/self/status")
	if code := v.run(); code != 0 || !strings.Contains(v.out.String(), "0000000000080004") {
		t.Errorf("run: got %d, %s%s; want a program with the caller's capabilities", code, &v.out, &v.err)
	}
}

// Root takes no config from others, and loads no library that others may replace.
func TestRootTrustsItself(t *testing.T) {
	folder := openFolder(t)
	for name, test := range map[string]struct {
		uid    int
		mode   os.FileMode
		folder os.FileMode
		want   string
	}{
		"owner":         {otherUser, 0o644, 0o755, "belongs to user 65534"},
		"group":         {0, 0o664, 0o755, "chmod go-w"},
		"all":           {0, 0o646, 0o755, "chmod go-w"},
		"folder":        {0, 0o644, 0o777, "chmod go-w"},
		"root's":        {0, 0o644, 0o755, ""},
		"sticky folder": {0, 0o644, 0o777 | os.ModeSticky, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := filepath.Join(folder, strings.ReplaceAll(name, " ", ""))
			if err := errors.Join(os.Mkdir(in, 0o755), os.Chmod(in, test.folder)); err != nil {
				t.Fatal(err)
			}
			_, err := agentconfig.Read(put(t, filepath.Join(in, "config.yaml"), "sampling: {nvml: /none}\n", test.uid,
				test.mode))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	library := fixture.NVML(t)
	if err := os.Chown(library, otherUser, otherUser); err != nil {
		t.Fatal(err)
	}
	config := put(t, filepath.Join(folder, "nvml.yaml"), fmt.Sprintf("sampling: {nvml: %s}\n", library), 0, 0o644)
	v := stallspan(t, "check", "--json", "--config", config)
	if v.run(); !strings.Contains(v.out.String(), "is not") || !strings.Contains(v.out.String(), "belongs to user") {
		t.Errorf("a library of another user: got %s%s, want it refused", &v.out, &v.err)
	}
}

// Another user's link in a folder for all does not make root write where it leads to.
func TestRootFollowsNoPlantedLink(t *testing.T) {
	folder := openFolder(t)
	sticky := filepath.Join(folder, "sticky")
	if err := errors.Join(os.Mkdir(sticky, 0o755), os.Chmod(sticky, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"report": {"run", "--report", "PATH", "--", "true"},
		"record": {"run", "--record", "PATH", "--", "true"},
		"stream": {"record", "--for", "100ms", "PATH"},
		"state":  {"run", "--baseline", "PATH", "--", "sh", "-c", "echo Epoch 1/2; sleep 0.05; echo Epoch 2/2"},
	} {
		victim := put(t, filepath.Join(folder, name), "", 0, 0o600)
		link := filepath.Join(sticky, name)
		if err := errors.Join(os.Symlink(victim, link), os.Lchown(link, otherUser, otherUser)); err != nil {
			t.Fatal(err)
		}
		for i := range args {
			if args[i] == "PATH" {
				args[i] = link
			}
		}
		before, _ := os.Stat(victim)
		v := stallspan(t, args...)
		v.run()
		after, err := os.Stat(victim)
		if err != nil || !os.SameFile(before, after) || after.Size() != 0 {
			t.Errorf("%s: got %v, %v, want an unchanged file; %s", name, after, err, &v.err)
		}
		if !strings.Contains(strings.Join(strings.Fields(v.err.String()), " "), "belongs to user 65534") {
			t.Errorf("%s: got %s, want the reason", name, &v.err)
		}
	}
}

// TestClosedFolder: where the socket's folder cannot be entered, no message is about the socket.
func TestClosedFolder(t *testing.T) {
	folder := openFolder(t)
	program := copyOf(t, filepath.Join(folder, "stallspan"))
	closed := filepath.Join(folder, "closed")
	if err := os.MkdirAll(filepath.Join(closed, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{filepath.Join(closed, "s.sock"), filepath.Join(closed, "inner", "s.sock")} {
		want := closed + " cannot be entered by this user"
		for _, args := range [][]string{{"ls"}, {"check"}} {
			v := asOther(t, program, args...)
			v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
			v.run()
			got := strings.Join(strings.Fields(v.out.String()+v.err.String()), " ")
			if !strings.Contains(got, want) || !strings.Contains(got, "not known whether an agent runs there") ||
				strings.Contains(got, "owner and group") || strings.Contains(got, ":rw ") {
				t.Errorf("%v, %s: got %s, want %q", args, socket, got, want)
			}
		}
	}
}
