package agent

import (
	"strings"
	"testing"
)

// TestFirstBatchOfEachEpoch: a loader starts a worker in each epoch, which needs seconds for its first batch. The
// program
// works from then on. Of the first epoch, that is the start of the program.
func TestFirstBatchOfEachEpoch(t *testing.T) {
	t.Parallel()
	d := reported(t, `
import multiprocessing

def compute():
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass

def work(to, seconds):
    time.sleep(seconds)
    for _ in range(20):
        to.send(1)

before = time.monotonic()
for _ in range(10):
    compute()
wait = 2 * (time.monotonic() - before)  # as long as the work of an epoch, on a machine with other work, too

context = multiprocessing.get_context("fork")
for epoch in range(2):
    print("Epoch %d/2" % (epoch + 1), flush=True)
    come, to = context.Pipe(False)
    worker = context.Process(target=work, args=(to, wait))
    worker.start()
    for _ in range(20):
        come.recv()
        compute()
    worker.join()
`)
	if len(d.Windows) != 2 {
		t.Fatalf("got %d windows, want two epochs", len(d.Windows))
	}
	for i, want := range []string{"hardly any of that was waiting for storage", "a process started again"} {
		w := &d.Windows[i]
		found := false
		for _, f := range w.Findings {
			if f.Kind != "first_batch" {
				continue
			}
			found = true
			if !strings.HasPrefix(f.Text, "The first batch took ") || !strings.Contains(f.Text, want) ||
				!strings.Contains(f.Remedy, "persistent_workers=True") {
				t.Errorf("%s: got %q, %q, want %q and persistent_workers", w.label(), f.Text, f.Remedy, want)
			}
		}
		if !found {
			t.Errorf("%s: got the findings %+v, want one on the first batch: %s", w.label(), w.Findings, w.Finding)
		}
	}
}
