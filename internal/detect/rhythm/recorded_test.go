package rhythm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/looks"
)

// Recordings of real programs with PyTorch (test/scenarios/jobs), whose epochs were announced. The detector gets the
// readings alone.
func TestRecordings(t *testing.T) {
	for name, want := range map[string]int{
		"images-6-sleep": 3, // six workers
		"cpu-2":          1, // its epochs take 4.2, 1.7 and 2.2 s: the second is too short, and the third begins after that
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
				announced := announced[len(announced)-want:]
				if d := (f.Start - announced[i].Start).Abs(); d > 500*time.Millisecond {
					t.Errorf("epoch %d begins %v off, want half a second at most", i+1, d)
				}
				if d := (f.End - announced[i].End).Abs(); d > time.Second {
					t.Errorf("epoch %d ends %v off, want a second at most", i+1, d)
				}
			}
		})
	}
}
