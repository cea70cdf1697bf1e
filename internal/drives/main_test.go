package drives

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
)

var update = flag.Bool("update", false, "write health.json into testdata/smart/*.txtar anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC // findings name weekdays
	goleak.VerifyTestMain(m)
}

// noon is a Thursday.
var noon = time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)

const oneDay = 24 * time.Hour

// disk is a healthy ATA disk with some counts.
func disk(name string, counts map[sample.DriveQuantity]float64) sample.Drive {
	d := sample.Drive{ID: "naa." + name, Device: name, Model: "Model " + name, Serial: "S" + name, Protocol: "ATA", Rotates: true,
		At: noon, Assessment: sample.DrivePassed}
	d.Values.Set(sample.DriveTemperature, 30)
	for q, v := range counts {
		d.Values.Set(q, v)
	}
	return d
}

// book is one in a folder of the test's own, which may have no problem.
func book(t *testing.T, path, boot string) *Book {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "drives.json")
	}
	return Open(path, boot, func(err error) { t.Errorf("a problem: %v", err) })
}

// lists is of a machine that lists these, and of which no more is known.
func lists(asked []sample.Drive) Listing {
	l := Listing{All: true, There: map[string]string{}}
	for i := range asked {
		l.There[asked[i].Device] = ""
	}
	return l
}

// Round takes over a round of a machine that lists just what is asked.
func (b *Book) Round(asked []sample.Drive, at time.Time) []sample.Drive {
	return b.Take(asked, lists(asked), at)
}

// one gives the drive of that name.
func one(t *testing.T, all []sample.Drive, device string) sample.Drive {
	t.Helper()
	for _, d := range all {
		if d.Device == device {
			return d
		}
	}
	t.Fatalf("no %s in %+v", device, all)
	return sample.Drive{}
}

type counts = map[sample.DriveQuantity]float64
