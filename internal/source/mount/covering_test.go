package mount

import (
	"slices"
	"strings"
	"testing"
)

func entries(t *testing.T, text string) []Entry {
	t.Helper()
	list, err := Entries(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCovering(t *testing.T) {
	// As after pivot_root: the root follows the mounts on it.
	tree := entries(t, `22 27 0:21 / /proc rw - proc proc rw
24 27 0:6 / /dev rw - devtmpfs devtmpfs rw
25 24 0:23 / /dev/shm rw - tmpfs first rw
27 1 254:0 / / rw - ext4 /dev/vda rw
30 25 0:27 / /dev/shm rw - tmpfs second rw
40 27 8:1 / /data/hot rw - ext4 /dev/sda1 rw
41 27 8:2 / /data rw - xfs /dev/sda2 rw
42 41 8:3 / /data/sub rw - xfs /dev/sda3 rw
43 27 8:17 /export /mnt/bind rw - xfs /dev/sdb1 rw
`)
	tests := []struct {
		path string
		id   int
	}{
		{"/", 27},
		{"/home/x", 27},
		{"/processes", 27}, // not in /proc
		{"/proc", 22},
		{"/dev/null", 24},
		{"/dev/shm/x", 30},        // the second covers the first
		{"/data/hot/weights", 41}, // 41 hides 40
		{"/data/sub/x", 42},
		{"/data/subway", 41},
		{"/mnt/bind/a/b", 43},
	}
	for _, test := range tests {
		if got, found := Covering(tree, test.path); !found || got.ID != test.id {
			t.Errorf("%s: got mount %d, want %d", test.path, got.ID, test.id)
		}
	}
}

func TestCoveringWithoutRoot(t *testing.T) {
	chroot := entries(
		t,
		"22 27 0:21 / /proc rw - proc proc rw\n30 22 0:27 / /proc/sys rw - proc a rw\n31 22 0:27 / /proc/sys rw - proc b rw\n",
	)
	if got, found := Covering(chroot, "/proc/sys/kernel"); !found || got.ID != 31 {
		t.Errorf("got %+v, want mount 31", got)
	}
	if got, found := Covering(chroot, "/home"); found {
		t.Errorf("path on no mount: got %+v, want none", got)
	}
	if _, found := Covering(nil, "/"); found {
		t.Error("empty list: got a mount, want none")
	}
}

func TestCoveringWithCycles(t *testing.T) {
	for _, text := range []string{
		"1 1 8:1 / / rw - ext4 a rw\n2 2 8:1 / / rw - ext4 a rw\n",
		"1 9 8:1 / / rw - ext4 a rw\n2 1 8:1 / /a rw - ext4 a rw\n1 2 8:1 / /a rw - ext4 a rw\n",
		"1 2 8:1 / / rw - ext4 a rw\n2 1 8:1 / / rw - ext4 a rw\n",
	} {
		if _, found := Covering(entries(t, text), "/a/b"); !found {
			t.Errorf("%q: got no mount, want one", text)
		}
	}
}

func TestLayers(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{
			`1 0 0:60 / / rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/var/a\054b\040c,workdir=/w`,
			[]string{"/var/a,b c", "/l1", "/l2"},
		},
		{`1 0 0:60 / / ro - overlay overlay ro,lowerdir=/a\134:b:relative::/data`, []string{"/a:b", "relative", "/data"}},
		{
			`1 0 0:60 / / rw - overlay o rw,lowerdir+=/a:b,lowerdir+=/c,datadir+=/d,upperdir=/u`,
			[]string{"/u", "/a:b", "/c", "/d"},
		},
		{`1 0 0:60 / / rw - overlay o rw,lowerdir=,upperdir`, nil},
		{`1 0 0:60 / / rw - ecryptfs /home/.private/x rw`, []string{"/home/.private/x"}},
		{`1 0 8:1 / / rw - ext4 /dev/a rw,upperdir=/no`, nil},
	}
	for _, test := range tests {
		if got := entries(t, test.line)[0].Layers(); !slices.Equal(got, test.want) {
			t.Errorf("%s\ngot  %q\nwant %q", test.line, got, test.want)
		}
	}
	many := entries(t, "1 0 0:60 / / rw - overlay o rw,upperdir=/u,lowerdir="+strings.Repeat("/l:", 5*maxLayers))
	if got := len(many[0].Layers()); got != maxLayers {
		t.Errorf("got %d layers, want the bound %d", got, maxLayers)
	}
}
