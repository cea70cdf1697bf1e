package cgroup

import (
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

// The kernel prints what was set for a real device.
func TestRealThrottle(t *testing.T) {
	const tree = "/sys/fs/cgroup/blkio"
	names, _ := os.ReadDir("/sys/block")
	group := tree + "/stallspan-limits-test-" + strconv.Itoa(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil || len(names) == 0 {
		t.Skipf("needs root, cgroup v1 with blkio, and a block device: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	number, err := os.ReadFile(filepath.Join("/sys/block", names[0].Name(), "dev"))
	if err != nil {
		t.Fatal(err)
	}
	rule := strings.TrimSpace(string(number)) + " 123456789"
	if err := os.WriteFile(group+"/blkio.throttle.read_bps_device", []byte(rule), 0); err != nil {
		t.Skipf("needs blkio.throttle: %v", err)
	}
	want := []sample.Limit{{
		Device: names[0].Name(), Cgroup: strings.TrimPrefix(group, tree), Control: sample.BlkioThrottle, ReadBytes: 123456789,
	}}
	if got := NewLimits("").Of(sleeper(t, group)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
