package monitor

import (
	"encoding/json"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/slowdisk"
)

func TestMain(m *testing.M) {
	if slowdisk.Serve() {
		return
	}
	goleak.VerifyTestMain(m)
}

// TestRealMachine watches this machine while a process of the test's own works on the CPU.
func TestRealMachine(t *testing.T) {
	m, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	defer m.Stop()
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := m.Jobs.Follow("job", cmd.Process.Pid, "", false); err != nil {
		t.Fatal(err)
	}
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Epoch: 3, HasEpoch: true, Job: "job"}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	if running := m.Windows.Running(); len(running) != 1 || running[0].ID != id {
		t.Fatalf("running: %+v", running)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(explain.NewReport(r))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if !r.Split || r.Busy+r.Storage+r.CPU+r.Other != r.Duration() {
		t.Fatalf("the ledger does not add up: %+v", r)
	}
	if r.CPU < r.Duration()/50 { // on a crowded machine it gets little
		t.Errorf("a busy loop was on the CPU %v of %v", r.CPU, r.Duration())
	}
	if _, err := m.Windows.End(id, m.Now()); err == nil {
		t.Error("a window ended twice")
	}
	m.Jobs.Unfollow("job")
	if ended := m.Windows.Ended(); len(ended) != 1 {
		t.Errorf("%d reports kept", len(ended))
	}
	for _, p := range m.Problems() {
		t.Log(p)
	}
}
