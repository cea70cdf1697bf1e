package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

func TestReportOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=4k"); err != nil {
		t.Logf("a real full disk needs the right to mount: %v", err)
		disk = ""
	} else {
		t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
		if err := os.WriteFile(disk+"/full", make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spare := regexp.MustCompile(`(?m)^stallspan: the report could not be written to its file and is in (\S+): no space left on device$`)
	for _, command := range []string{"exit 0", "exit 7"} {
		for _, path := range []string{"/dev/full", filepath.Join(disk, "report.json")} {
			if disk == "" && path != "/dev/full" {
				continue
			}
			v := stallspan(t, "run", "--report", path, "--", "sh", "-c", command)
			want := cli.ExitRun
			if command == "exit 7" {
				want = 7
			}
			if code := v.run(); code != want {
				t.Errorf("%s, %s: exit code %d", path, command, code)
			}
			found := spare.FindStringSubmatch(v.err.String())
			if found == nil {
				t.Fatalf("%s: it does not say where the report is: %s", path, v.err.String())
			}
			if filepath.Dir(found[1]) != v.temp {
				t.Errorf("%s is not in the folder for temporary files", found[1])
			}
			readReport(t, found[1])
		}
	}
	if disk != "" {
		if left, _ := os.ReadDir(disk); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}
