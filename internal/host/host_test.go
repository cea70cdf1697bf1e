package host

import (
	"os"
	"testing"

	"github.com/stallspan/stallspan/internal/fixture"
)

func TestHost(t *testing.T) {
	root := t.TempDir()
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if id, name := ID(root), Name(root); id != "" || name != own {
		t.Errorf("of an empty folder: %q, %q", id, name)
	}
	fixture.Write(t, root, "var/lib/dbus/machine-id", []byte("0123456789abcdef0123456789abcdef\n"))
	fixture.Write(t, root, "etc/hostname", []byte(" node-7\xff \nmore\n"))
	if id, name := ID(root), Name(root); id != "0123456789abcdef0123456789abcdef" || name != "node-7" {
		t.Errorf("%q, %q", id, name)
	}
	fixture.Write(t, root, "etc/machine-id", []byte("fedcba9876543210fedcba9876543210\n"))
	if id := ID(root); id != "fedcba9876543210fedcba9876543210" {
		t.Errorf("%q", id)
	}
	if Name("/") != own || Name("") != own {
		t.Errorf("without a root: %q, %q", Name("/"), Name(""))
	}
}
