package monitor

import (
	"testing"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// A window that follows the client that announced it is about the whole machine once the client has ended, also while
// it is open, and in a replay.
func TestWindowOfAClientThatIsGone(t *testing.T) {
	p := newTape(t)
	m := p.ofThisProcess()
	pid, end := fixture.Sleeper(t)
	if err := m.Jobs.Follow("client", pid, "", false); err != nil {
		t.Fatal(err)
	}
	id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Job: "client", PID: pid, ByClient: true}, m.Now())
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		m.Tick()
	}
	if r := m.Windows.Running()[0]; r.Scope != window.Process || r.Lacks(window.ClientGone) {
		t.Errorf("while the client runs: got the scope %s, %+v, want %s", r.Scope, r.Missing, window.Process)
	}
	end()
	m.Tick()
	if r := m.Windows.Running()[0]; r.Scope != window.Host || !r.Lacks(window.ClientGone) {
		t.Errorf("after its end: got the scope %s, %+v, want %s and the reason", r.Scope, r.Missing, window.Host)
	}
	r, err := m.Windows.End(id, m.Now())
	if err != nil || r.Scope != window.Host || !r.Lacks(window.ClientGone) || !r.Split {
		t.Errorf("got the scope %s, %+v, %v, want a ledger of the %s and the reason", r.Scope, r.Missing, err, window.Host)
	}
	m.Jobs.Unfollow("client")
	m.Stop()
	p.replaysTheSame()
}
