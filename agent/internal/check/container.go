package check

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// initialPIDs is the name in /proc of the machine's first PID namespace (PROC_PID_INIT_INO in the kernel).
const initialPIDs = "pid:[4026531836]"

// AllPIDs reports whether this process sees the numbers of all processes of the machine whose root is given.
func AllPIDs(root string) bool {
	namespace, err := os.Readlink(filepath.Join(root, "proc/self/ns/pid"))
	return err == nil && namespace == initialPIDs
}

// container reports what a container hides, and nothing outside of one.
func (m *machine) container(context.Context) []Finding {
	signs := m.containerSigns()
	if len(signs) == 0 {
		return nil
	}
	f := Finding{Area: Container, What: "container", Details: map[string]any{"signs": signs}}
	if AllPIDs(m.root) {
		return f.as(Seen, "", "This looks like a container (%s), but all processes of the machine are visible.", signs[0])
	}
	fix := "docker run --pid=host ... # its root may then also send signals to all processes of the machine"
	if strings.HasPrefix(signs[0], "KUBERNETES") {
		fix = "hostPID: true, in the pod's spec: its root may then also send signals to all processes of the node"
	}
	return f.as(Limited, fix, "This is a container (%s): disks and pressure are those of the whole machine, processes "+
		"those of the container.", signs[0])
}

// containerSigns are the signs that the machine is seen from a container.
func (m *machine) containerSigns() []string {
	var signs []string
	if m.isHost() && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		signs = append(signs, "KUBERNETES_SERVICE_HOST is set")
	}
	for _, name := range []string{".dockerenv", "run/.containerenv"} {
		if exists(m.path(name)) {
			signs = append(signs, m.path(name))
		}
	}
	if value, err := readFile(m.path("run/systemd/container")); err == nil {
		signs = append(signs, strings.TrimSpace(value))
	}
	return signs
}
