package locate

import (
	"os"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

func TestHost(t *testing.T) {
	root := t.TempDir()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want := func(id, name string) {
		t.Helper()
		if gotID, gotName := HostID(root), HostName(root); gotID != id || gotName != name {
			t.Errorf("got %q, %q, want %q, %q", gotID, gotName, id, name)
		}
	}
	const dbus, systemd = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	want("", own)
	fixture.Write(t, root, "var/lib/dbus/machine-id", []byte(dbus+"\n"))
	fixture.Write(t, root, "etc/hostname", []byte(" node-7\xff \nmore\n"))
	want(dbus, "node-7")
	fixture.Write(t, root, "etc/machine-id", []byte(systemd+"\n"))
	want(systemd, "node-7")
	for _, root := range []string{"/", ""} {
		if got := HostName(root); got != own {
			t.Errorf("root %q: got %q, want %q", root, got, own)
		}
	}
}
