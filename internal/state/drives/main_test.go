package drives

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
)

var update = flag.Bool("update", false, "write health.json into testdata/smart/*.txtar")

func TestMain(m *testing.M) {
	time.Local = time.UTC // findings contain weekdays
	if path := os.Getenv(updateOnce); path != "" {
		updateAt(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// noon is a Thursday.
var noon = time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)

const oneDay = 24 * time.Hour

// disk returns a healthy ATA disk with some values.
func disk(name string, counts map[sample.DriveQuantity]float64) sample.Drive {
	d := sample.Drive{
		ID: "naa." + name, Device: name, Model: "Model " + name, Serial: "S" + name, Protocol: "ATA", Rotates: true,
		At: noon, Assessment: sample.DrivePassed,
	}
	d.Values.Set(sample.DriveTemperature, 30)
	for q, v := range counts {
		d.Values.Set(q, v)
	}
	return d
}

// newHistory opens a history, by default in a temporary folder. Problems fail the test.
func newHistory(t *testing.T, path, boot string) *History {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "drives.json")
	}
	return Open(path, boot, func(err error) { t.Errorf("got problem %v, want none", err) })
}

// listingOf returns the listing of a machine with these drives, without their IDs.
func listingOf(drives []sample.Drive) Listing {
	l := Listing{Complete: true, Present: map[string]string{}}
	for i := range drives {
		l.Present[drives[i].Device] = ""
	}
	return l
}

// Round is Update on a machine that lists the same drives.
func (h *History) Round(drives []sample.Drive, at time.Time) []sample.Drive {
	return h.Update(drives, listingOf(drives), at)
}

// find returns the drive with a name.
func find(t *testing.T, all []sample.Drive, device string) sample.Drive {
	t.Helper()
	for _, d := range all {
		if d.Device == device {
			return d
		}
	}
	t.Fatalf("got %+v, want %s among them", all, device)
	return sample.Drive{}
}

type counts = map[sample.DriveQuantity]float64

// updateOnce makes a copy of the test program add a drive to the history in the file that it names.
const updateOnce = "STALLSPAN_TEST_UPDATE_ONCE"

func updateAt(path string) {
	Open(path, "boot", func(err error) { fmt.Println(err) }).
		Round([]sample.Drive{disk("sda", nil), disk("sdb", nil)}, noon.Add(time.Hour))
}
