package locate

import (
	"strings"

	"github.com/stallspan/stallspan/internal/host"
)

// machine is what this one is called.
type machine struct {
	id, name, node string // "" where unknown
	assumeLocal    bool
}

func thisMachine(root, node string, assumeLocal bool) machine {
	return machine{id: host.ID(root), name: host.Name(root), node: node, assumeLocal: assumeLocal}
}

// relation of an attribute to what we know of ourselves.
type relation int

const (
	unsaid  relation = iota
	unclear          // something is said, but it cannot be compared, or a difference proves nothing
	ours
	another
)

// judge tells whether the names in w are this machine's, whatever its container.id turns out to be, and whether the
// program is known to run outside of any container. See the package's comment for the rules.
func (m *machine) judge(w *Who) (local, outside bool) {
	node, id, name := m.compareNode(w.NodeName), m.compareID(w.HostID), m.compareName(w.HostName)
	// In a container host.name is the container's own, unless it shares the host's network.
	outside = id != another && (name == ours || name == unsaid && id == ours)
	switch {
	case m.assumeLocal:
		return true, outside
	case node == ours || node == another:
		return node == ours, outside
	case id == ours || id == another:
		return id == ours, outside
	case name == ours:
		return true, outside
	}
	return node == unsaid && id == unsaid && name == unsaid && w.ContainerID == "", outside
}

func (m *machine) compareNode(node string) relation {
	switch {
	case node == "":
		return unsaid
	case m.node == "":
		return unclear
	case node == m.node:
		return ours
	}
	return another
}

// machineIDDigits is the length of a machine-id (machine-id(5)).
const machineIDDigits = 32

// compareID takes the form of a UUID for the same ID, as some libraries print it. A UUID that differs may be the
// mainboard's, of this very machine.
func (m *machine) compareID(id string) relation {
	switch {
	case id == "":
		return unsaid
	case m.id == "":
		return unclear
	case sameID(id, m.id):
		return ours
	case len(id) == machineIDDigits && isHex(id) && len(m.id) == machineIDDigits && isHex(m.id):
		return another
	}
	return unclear
}

// sameID compares without regard to case, and to the hyphens of a UUID.
func sameID(a, b string) bool {
	if len(a) > len(b)+4 || len(b) > len(a)+4 { // a UUID has four hyphens
		return false
	}
	for a != "" && b != "" {
		switch {
		case a[0] == '-' && b[0] != '-':
			a = a[1:]
		case b[0] == '-' && a[0] != '-':
			b = b[1:]
		case lower(a[0]) != lower(b[0]):
			return false
		default:
			a, b = a[1:], b[1:]
		}
	}
	return a == b
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// compareName never says another: a pod on this machine has a name of its own.
func (m *machine) compareName(name string) relation {
	switch {
	case name == "":
		return unsaid
	case m.name != "" && sameName(name, m.name):
		return ours
	}
	return unclear
}

// sameName compares as DNS does, without regard to case and a final dot. A name without a domain is the same as one
// with any: on one and the same machine some programs ask the kernel, which mostly knows the short name, and others
// DNS. Two names with domains must be the same in full.
func sameName(a, b string) bool {
	a, b = strings.TrimSuffix(a, "."), strings.TrimSuffix(b, ".")
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < len(b) && a != "" && b[len(a)] == '.' && !strings.Contains(a, ".") {
		b = b[:len(a)]
	}
	return strings.EqualFold(a, b)
}

// isHex tells whether s is of hexadecimal digits alone.
func isHex[T string | []byte](s T) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
