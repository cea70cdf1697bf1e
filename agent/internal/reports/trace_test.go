package reports

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/pftrace"
)

// TestJournals: a recording that fails does not end the trace.
func TestJournals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pftrace")
	files, err := openOutputs("", "", path)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Discard()
	to := files.Live(failing{})
	for i := range 3 {
		e := recording.Entry{Source: "cpu", Sample: &sample.Sample{
			At: sample.Now(), Cores: []sample.Core{{Name: "cpu0", User: time.Duration(i) * time.Second}},
		}}
		if err := to.Write(&e); err != nil {
			t.Errorf("got the error %v, want it from the recording's owner alone", err)
		}
	}
	if err := files.Trace.save(nil, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if track := pftrace.Decode(t, data).Of("CPU", "cores at work"); track == nil || len(track.Values) != 2 {
		t.Errorf("got %+v, want two values", track)
	}
}

type failing struct{}

func (failing) Write(*recording.Entry) error { return errors.New("no space left on device") }
