package rhythm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/looks"
)

// Recordings of real programs with PyTorch (lab/jobs), whose epochs were announced. The detector gets the
// readings alone.
func TestRecordings(t *testing.T) {
	for name, want := range map[string]int{
		"images-6-sleep": 3, // six workers
		"cpu-2":          2, // its epochs take 4.2, 1.7 and 2.2 s: the second is too short
		"pool":           0, // each pass has a pool of processes, and then the program fits a classifier: no training
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(filepath.Join("testdata", name+".jsonl.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			all, announced, err := looks.Recorded(file, "run")
			if err != nil {
				t.Fatal(err)
			}
			found := looks.Replay(New("run"), all, true)
			if len(found) != want {
				t.Fatalf("%d epochs were found, want %d: %v; announced %v", len(found), want, found, announced)
			}
			for i, f := range found {
				is := func(e looks.Epoch) bool {
					return (f.Start-e.Start).Abs() <= 500*time.Millisecond && (f.End-e.End).Abs() <= time.Second
				}
				if !slices.ContainsFunc(announced, is) {
					t.Errorf("epoch %d: got %v to %v, want one of %v: half a second and a second off at most", i+1, f.Start,
						f.End, announced)
				}
			}
		})
	}
}
