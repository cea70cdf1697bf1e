package agent

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

// A full disk ends a recording with one line. It does not end the wrapped program.
func TestRecordOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	const says = "stallspan: the recording cannot be written, check its disk: no space left on device\n"
	v, said, _ := startRecord(t, disk+"/f.gz")
	if code := v.wait(); code != cli.ExitFailed || strings.Count(said.String(), says) != 1 ||
		!strings.Contains(v.out.String(), "recording ") {
		t.Errorf("exit code %d: %s%s", code, said, v.out.String())
	}
	replayed := stallspan(t, "replay", disk+"/f.gz")
	if code := replayed.run(); code != cli.ExitFailed || !strings.Contains(replayed.errorLine(), "cut off") {
		t.Errorf("replay: exit code %d", code)
	}
	full := stallspan(t, "record", disk+"/g.gz")
	if code := full.run(); code != cli.ExitFailed || full.errorLine()+"\n" != says {
		t.Errorf("exit code %d: %s", code, full.err.String())
	}
	if err := os.Remove(disk + "/f.gz"); err != nil {
		t.Fatal(err)
	}
	wrapped := stallspan(t, "run", "--record", disk+"/f.gz", "--", "sh", "-c",
		"for i in $(seq 300); do echo Epoch $i/300; sleep 0.01; done; echo the end")
	if code := wrapped.run(); code != cli.ExitRun || !strings.HasSuffix(wrapped.out.String(), "the end\n") ||
		strings.Count(wrapped.err.String(), says) != 1 {
		t.Errorf("exit code %d: %s%s", code, wrapped.out.String(), wrapped.err.String())
	}
}

// A read-only disk is reported before anything begins.
func TestRecordOnAReadOnlyDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_RDONLY, "size=8k"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	v := stallspan(t, "record", disk+"/f.gz")
	if code := v.run(); code != cli.ExitFailed || !strings.HasSuffix(v.errorLine(), "read-only file system") {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
}
