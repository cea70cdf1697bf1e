// Package host identifies the machine for resource attributes. root is the folder that is the host's "/": "/hostfs" in a
// container, usually "".
package host

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ID returns the machine id of systemd, or else of D-Bus; "" without one.
func ID(root string) string {
	for _, path := range []string{"etc/machine-id", "var/lib/dbus/machine-id"} {
		if id := firstLine(root, path); id != "" {
			return id
		}
	}
	return ""
}

// Name returns the host's name, not the container's, if root has the host's files.
func Name(root string) string {
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

// firstLine returns the first line of a small file, trimmed; "" if it cannot be read.
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
