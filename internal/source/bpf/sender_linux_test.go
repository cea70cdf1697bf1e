//go:build amd64 || arm64

package bpf

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestSenders(t *testing.T) {
	own := os.Getpid()
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Skip(err)
	}
	none := func(int) bool { return false }
	in := sample.ThreadEvent{At: time.Second, Kind: sample.ThreadIn, WakerKind: sample.SoftIRQ, Waker: own, WakerPID: own}
	var s senders
	got, is := s.name(&in, none)
	if want := strings.TrimSpace(string(comm)); !is || got.Name != want || got.TID != own || got.At != in.At {
		t.Errorf("got %+v, %v; want the name %q", got, is, want)
	}
	in.At += time.Second
	if got, is := s.name(&in, none); is {
		t.Errorf("got %+v again", got)
	}
	for what, refused := range map[string]*senders{
		"a job's own": {}, "too soon": {next: time.Hour},
	} {
		follows := func(int) bool { return what == "a job's own" }
		if got, is := refused.name(&in, follows); is {
			t.Errorf("%s: got %+v", what, got)
		}
	}
}
