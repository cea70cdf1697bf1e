package locate

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// HostID returns the machine-id of systemd, or else that of D-Bus; "" without either. root is the folder that stands
// for the machine's "/": "/hostfs" in a container.
func HostID(root string) string {
	for _, path := range []string{"etc/machine-id", "var/lib/dbus/machine-id"} {
		if id := firstLine(root, path); id != "" {
			return id
		}
	}
	return ""
}

// HostName returns the name of the host. If root has the host's files, it is not the name of the container.
func HostName(root string) string {
	if root != "" && root != "/" {
		if name := firstLine(root, "etc/hostname"); name != "" {
			return name
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(name, "")
}

// firstLine returns the trimmed first line of a small file; "" if it cannot be read.
func firstLine(root, path string) string {
	file, err := os.Open(filepath.Join("/", root, path))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, 256))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.ToValidUTF8(strings.TrimSpace(line), "")
}
