package readers

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func process(t *testing.T, root string, pid int, files map[string]string) {
	t.Helper()
	folder := filepath.Join(root, "proc", strconv.Itoa(pid))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func io(read int) string {
	return "rchar: 999\nwchar: 5\nsyscr: 1\nsyscw: 1\nread_bytes: " + strconv.Itoa(read) + "\nwrite_bytes: 7\n"
}

func TestMostRead(t *testing.T) {
	root := t.TempDir()
	id := strings.Repeat("0123456789abcdef", 4)
	process(t, root, 10, map[string]string{"io": io(100), "comm": "rsync\n", "cgroup": "1:blkio:/x\n0::/system.slice/backup.service\n"})
	process(t, root, 11, map[string]string{"io": io(500), "comm": "train\n", "cgroup": "0::/docker-" + id + ".scope\n"})
	process(t, root, 12, map[string]string{"io": io(7)})
	process(t, root, 13, map[string]string{"comm": "not for us\n"})
	process(t, root, 14, map[string]string{"io": "nonsense"})
	before := Scan(root)
	process(t, root, 10, map[string]string{"io": io(5100)})
	process(t, root, 11, map[string]string{"io": io(600)})
	process(t, root, 12, map[string]string{"io": io(3)}) // another process
	process(t, root, 15, map[string]string{"io": io(50)})
	if got, want := Between(before, Scan(root), 3), []Reader{{10, 5000}, {11, 100}, {15, 50}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Between(nil, before, 3); got != nil {
		t.Errorf("without a beginning: %v", got)
	}
	if Name(root, 10) != "rsync" || Name(root, 99) != "" {
		t.Errorf("names %q, %q", Name(root, 10), Name(root, 99))
	}
	if a, b, c := Group(root, 10), Group(root, 11), Group(root, 99); a != "backup.service" || b != "0123456789ab" || c != "" {
		t.Errorf("groups %q, %q, %q", a, b, c)
	}
}

func TestTooMany(t *testing.T) {
	root := t.TempDir()
	for i := range Most + 1 {
		process(t, root, i+1, map[string]string{"io": io(1)})
	}
	if got := Scan(root); got != nil {
		t.Errorf("%d processes", len(got))
	}
	if got := Scan(t.TempDir()); got != nil {
		t.Errorf("without /proc: %v", got)
	}
}

// What is forbidden is left out: as nobody, only our own processes are for us to read.
func TestThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/self/io"); err != nil {
		t.Skip("this machine has no /proc/PID/io")
	}
	if _, there := Scan("")[os.Getpid()]; !there {
		t.Error("our own process is not in it")
	}
}

func BenchmarkScan(b *testing.B) {
	n := 0
	for b.Loop() {
		n = len(Scan(""))
	}
	b.ReportMetric(float64(n), "processes")
}
