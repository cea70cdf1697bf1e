package locate

import (
	"strings"
)

// machine has the names of this machine.
type machine struct {
	id, name, node string // "" if unknown
	assumeLocal    bool
}

func thisMachine(root, node string, assumeLocal bool) machine {
	return machine{id: HostID(root), name: HostName(root), node: node, assumeLocal: assumeLocal}
}

// relation is how an attribute compares with ours.
type relation int

const (
	unset   relation = iota
	unclear          // it is set, but cannot be compared, or a difference proves nothing
	ours
	another
)

// isLocal reports whether the names in w are those of this machine, without regard to its container.id. outside means
// that the program runs outside of any container. The package comment has the rules.
func (m *machine) isLocal(w *Who) (local, outside bool) {
	node, id, name := m.compareNode(w.NodeName), m.compareID(w.HostID), m.compareName(w.HostName)
	// In a container, host.name is that of the container, unless it shares the host's network.
	outside = id != another && (name == ours || name == unset && id == ours)
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
	return node == unset && id == unset && name == unset && w.ContainerID == "", outside
}

func (m *machine) compareNode(node string) relation {
	switch {
	case node == "":
		return unset
	case m.node == "":
		return unclear
	case node == m.node:
		return ours
	}
	return another
}

// machineIDDigits is the length of a machine-id (machine-id(5)).
const machineIDDigits = 32

// compareID accepts the form of a UUID, as some libraries print it. A UUID that differs may be that of the mainboard of
// this same machine.
func (m *machine) compareID(id string) relation {
	switch {
	case id == "":
		return unset
	case m.id == "":
		return unclear
	case sameID(id, m.id):
		return ours
	case len(id) == machineIDDigits && isHex(id) && len(m.id) == machineIDDigits && isHex(m.id):
		return another
	}
	return unclear
}

// sameID compares without regard to case and to the hyphens of a UUID.
func sameID(a, b string) bool {
	bare := func(id string) string {
		const uuid = 36 // digits and hyphens
		if len(id) == uuid {
			return strings.ReplaceAll(id, "-", "")
		}
		return id
	}
	return strings.EqualFold(bare(a), bare(b))
}

// compareName never returns another: a pod on this machine has a name of its own.
func (m *machine) compareName(name string) relation {
	switch {
	case name == "":
		return unset
	case m.name != "" && sameName(name, m.name):
		return ours
	}
	return unclear
}

// sameName compares as DNS does, without regard to case and a final dot. A name without a domain equals one with any:
// on the same machine, some programs get the short name from the kernel, and others the full name from DNS. Two names
// with domains must be equal in full.
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

// isHex reports whether s has only lower-case hexadecimal digits.
func isHex[T string | []byte](s T) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
