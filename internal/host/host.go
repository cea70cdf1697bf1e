// Package host says which machine this is, as the resource of everything that leaves does. root is the folder that
// stands for the machine's "/": "/hostfs" in a container, "" otherwise.
package host

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ID is the identity that systemd, or else D-Bus, gave to this installation; "" where there is none.
func ID(root string) string {
	for _, path := range []string{"etc/machine-id", "var/lib/dbus/machine-id"} {
		if id := firstLine(root, path); id != "" {
			return id
		}
	}
	return ""
}

// Name is the host's, not the container's, where the host's files are at hand.
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

// firstLine is the trimmed beginning of a small file, "" where it cannot be read.
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
