package mount

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestParseLines(t *testing.T) {
	tests := []struct {
		name, line string
		want       sample.Mount
	}{
		{
			"plain", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard",
			sample.Mount{ID: 27, Point: "/", Type: "ext4", Source: "/dev/vda", Root: "/", Major: 254},
		},
		{
			"one tag", "36 35 98:7 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue",
			sample.Mount{ID: 36, Point: "/mnt2", Type: "ext3", Source: "/dev/root", Root: "/mnt1", Major: 98, Minor: 7},
		},
		{
			"three tags", "40 35 0:52 / /n rw shared:5 master:3 propagate_from:2 - nfs4 srv:/export rw,addr=10.0.0.2",
			sample.Mount{ID: 40, Point: "/n", Type: "nfs4", Source: "srv:/export", Root: "/", Minor: 52},
		},
		{
			"escapes",
			`41 35 8:1 /a\011b /mnt/My\040Disk\134x\012y rw - fuse.ssh\040fs u@h:/p\040q rw`,
			sample.Mount{ID: 41, Point: "/mnt/My Disk\\x\ny", Type: "fuse.ssh fs", Source: "u@h:/p q", Root: "/a\tb",
				Major: 8, Minor: 1},
		},
		{
			"backslashes that escape nothing", `42 35 8:1 /\9 /a\04 rw - ext4 \ rw`,
			sample.Mount{ID: 42, Point: `/a\04`, Type: "ext4", Source: `\`, Root: `/\9`, Major: 8, Minor: 1},
		},
		{
			"empty source", "43 35 0:44 / /t rw - tmpfs  rw,size=4k",
			sample.Mount{ID: 43, Point: "/t", Type: "tmpfs", Root: "/", Minor: 44},
		},
		{
			"a mount point called minus", "44 35 0:44 - /- rw - tmpfs - rw",
			sample.Mount{ID: 44, Point: "/-", Type: "tmpfs", Source: "-", Root: "-", Minor: 44},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Parse(strings.NewReader(test.line + "\n"))
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], test.want) {
				t.Errorf("got %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func TestParseSkipsBadLines(t *testing.T) {
	bad := []string{
		"garbage",
		"27 1 254:0 / / rw,relatime ext4 /dev/vda rw", // no separator
		"27 1 254:0 / / rw -",
		"27 1 254:0 / / rw - ext4",
		"27 1 254:0 / / rw - ext4 /dev/vda",
		"27 1 254 / / rw - ext4 /dev/vda rw",
		"27 1 254:x / / rw - ext4 /dev/vda rw",
		"27 1 -1:0 / / rw - ext4 /dev/vda rw",
		"x 1 254:0 / / rw - ext4 /dev/vda rw",
		"27 x 254:0 / / rw - ext4 /dev/vda rw",
		"99999999999 1 254:0 / / rw - ext4 /dev/vda rw",
		"27 1 254:0 / relative rw - ext4 /dev/vda rw",
		"27 1 254:0 / / rw -  /dev/vda rw",
	}
	for _, line := range bad {
		text := "1 0 8:1 / / rw - ext4 /dev/a rw\n" + line + "\n2 1 8:2 / /b rw - xfs /dev/b rw"
		got, err := Parse(strings.NewReader(text))
		if len(got) != 2 || got[0].ID != 1 || got[1].ID != 2 {
			t.Errorf("%q: got %+v, want the other lines", line, got)
		}
		if err == nil || !strings.Contains(err.Error(), "1 line(s)") || !strings.Contains(err.Error(), "is line 2") ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got error %v, want one with the line", line, err)
		}
	}
}

func TestParseFailingReader(t *testing.T) {
	cause := errors.New("gone")
	line := "1 0 8:1 / / rw - ext4 /dev/a rw\n"
	got, err := Parse(io.MultiReader(strings.NewReader(line+"cut off"), iotest.ErrReader(cause)))
	if len(got) != 1 || !errors.Is(err, cause) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %+v, %v; want the first lines and the cause", got, err)
	}
}

func TestParseIsBounded(t *testing.T) {
	line := "1 0 8:1 / / rw - ext4 /dev/a rw\n"
	got, err := Parse(strings.NewReader(strings.Repeat(line, maxText/len(line)+100)))
	if err == nil || len(got) != maxText/len(line) {
		t.Errorf("got %d mounts, %v; want %d and an error", len(got), err, maxText/len(line))
	}
	// One endless line has no mounts.
	if got, err := Parse(strings.NewReader(strings.Repeat("x", maxText+5))); err == nil || len(got) != 0 {
		t.Errorf("got %d mounts, %v", len(got), err)
	}
}

func TestParseThisMachine(t *testing.T) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		t.Skip("no /proc/self/mountinfo here:", err)
	}
	defer func() { _ = f.Close() }()
	mounts, err := Parse(f)
	if err != nil || len(mounts) == 0 {
		t.Errorf("got %d mounts, %v", len(mounts), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("36 35 98:7 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"))
	f.Add([]byte(`50 1 0:60 / /m\040x rw - overlay overlay rw,upperdir=/a\054b` + "\n\ngarbage\n"))
	f.Add([]byte("43 35 0:44 / /t rw - tmpfs  rw"))
	f.Add([]byte{0, '\n', 0xff, ' ', '-', ' '})
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := Entries(strings.NewReader(string(text)))
		lines := 0
		for line := range strings.Lines(string(text)) {
			if strings.TrimSuffix(line, "\n") != "" {
				lines++
			}
		}
		if len(entries) > lines || err == nil && len(entries) != lines {
			t.Errorf("got %d entries of %d lines, error %v", len(entries), lines, err)
		}
		if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > 600) {
			t.Errorf("got error %q, want one line", err)
		}
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Point, "/") || entry.Type == "" || entry.ID < 0 {
				t.Errorf("got the impossible mount %+v", entry)
			}
			_ = entry.Layers()
			if _, found := Covering(entries, entry.Point); !found && entry.Point == "/" {
				t.Errorf("%q: got no covering mount, want one", entry.Point)
			}
		}
	})
}

// FuzzEscape escapes a mount point like the kernel and parses it.
func FuzzEscape(f *testing.F) {
	f.Add("/plain")
	f.Add("/a b\tc\nd\\e#f")
	f.Add(`/\040`)
	f.Fuzz(func(t *testing.T, point string) {
		point = "/" + point
		escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, "#", `\043`).Replace(point)
		mounts, err := Parse(strings.NewReader("1 0 8:1 / " + escaped + " rw - ext4 /dev/a rw\n"))
		if err != nil || len(mounts) != 1 || mounts[0].Point != point {
			t.Errorf("got %+v, %v; want the point %q", mounts, err, point)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := strings.Repeat(
		"36 35 98:7 /mnt1 /mnt2/with/a/longer/path rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n",
		40,
	)
	for b.Loop() {
		if _, err := Parse(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
