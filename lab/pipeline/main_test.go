//go:build linux

package pipeline

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if Main() {
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// start runs a program until the test ends.
func start(t testing.TB) *Program {
	t.Helper()
	p, err := Start(t.Context(), StartOptions{Rate: 5e8, Env: []string{"GORACE=atexit_sleep_ms=0"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// shards returns three files of slightly more than 2 MiB.
func shards(t testing.TB) []string {
	t.Helper()
	paths, err := Layout(t.TempDir(), 3, 2<<20+777, 1)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// run runs one plan from start to end.
func run(t testing.TB, p *Program, plan Plan) Truth {
	t.Helper()
	if err := p.Prepare(plan); err != nil {
		t.Fatal(err)
	}
	truth, err := p.Go(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	consistent(t, plan, truth)
	return truth
}

// consistent checks what must hold for every plan on every machine, however loaded.
func consistent(t testing.TB, plan Plan, truth Truth) {
	t.Helper()
	parts := truth.Busy + truth.Read + truth.Decode + truth.Write + truth.Sync + truth.Ready + truth.Other
	if parts != truth.Duration || truth.Other < 0 || truth.Read < 0 || truth.Decode < 0 {
		t.Errorf("the parts are %v: %+v", parts, truth)
	}
	if threads := truth.ReadBlocked + truth.ReadReady + truth.ReadCPU; threads != truth.ReadTime ||
		truth.DecodeReady > truth.DecodeTime {
		t.Errorf("a thread's time in reads is %v: %+v", threads, truth)
	}
	if plan.Load != "" {
		return
	}
	if truth.Steps != plan.Steps || truth.Records != plan.Steps*plan.Batch ||
		truth.Bytes != int64(truth.Records)*int64(plan.Record) {
		t.Errorf("not the plan's work: %+v", truth)
	}
	if truth.Busy < time.Duration(plan.Steps)*plan.Compute || truth.Sync < time.Duration(plan.Steps)*plan.Sync {
		t.Errorf("less than the plan's times: %+v", truth)
	}
}

// skipUnlessOffered skips if the file system or the kernel lacks this kind of reading.
func skipUnlessOffered(t *testing.T, p *Program, plan Plan) {
	t.Helper()
	if plan.Reading == Buffered || plan.Reading == Mapped {
		return
	}
	if err := p.Prepare(plan); err != nil {
		t.Skipf("%s is not offered here: %v", plan.Reading, err)
	}
}

// expected returns the plan's checksum, computed with plain reads.
func expected(t testing.TB, plan Plan) (sum uint32) {
	t.Helper()
	o, err := newOrder(&plan)
	if err != nil {
		t.Fatal(err)
	}
	var files [][]byte
	for _, path := range plan.Files {
		data, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	for i := range plan.Steps * plan.Batch {
		at := o.at(i)
		sum += crc32.Checksum(files[at.file][at.offset:][:plan.Record], castagnoli) * (2*uint32(i) + 1)
	}
	return sum
}
