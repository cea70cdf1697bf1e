package locate

import (
	"strings"
	"testing"
)

const (
	ourID   = "3d1219c7c4c5404aaa1f6d2a48adfda4"
	otherID = "0000000000000000000000000000beef"
	ourUUID = "3D1219C7-C4C5-404A-AA1F-6D2A48ADFDA4"
	hereID  = "4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b"
	awayID  = "ffff6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b4f1c6d0b"
)

// Every combination of the four attributes, each unset, ours, or not ours, against the table in other words.
func TestLocalByEveryCombination(t *testing.T) {
	values := map[string][3]string{
		"node":      {"", "node-7", "node-8"},
		"id":        {"", ourID, otherID},
		"name":      {"", "gpu1", "web-5d9c"},
		"container": {"", hereID, awayID},
	}
	const (
		none = iota
		same
		differs
	)
	all := []int{none, same, differs}
	l := New(machineOf(t, "docker_v2"), "node-7", false)
	assuming := New(machineOf(t, "docker_v2"), "node-7", true)
	nameless := New(machineOf(t, "docker_v2"), "", false)
	tried := 0
	for _, node := range all {
		for _, id := range all {
			for _, name := range all {
				for _, container := range all {
					w := Who{NodeName: values["node"][node], HostID: values["id"][id], HostName: values["name"][name],
						ContainerID: values["container"][container]}
					byHost := id == same || id == none && name == same
					silent := node == none && id == none && name == none && container == none
					want := container == same || node == same || node == none && (byHost || silent)
					if _, got := l.Find(w); got != want {
						t.Errorf("%+v: local %v", w, got)
					}
					if _, got := assuming.Find(w); !got {
						t.Errorf("%+v: not local, though it is to be assumed", w)
					}
					// What our own node is called is not known: the node decides nothing.
					if _, got := nameless.Find(w); got != (container == same || byHost || silent) {
						t.Errorf("%+v: local %v on a node without a name", w, got)
					}
					tried++
				}
			}
		}
	}
	if tried != 81 {
		t.Errorf("%d combinations", tried)
	}
}

// A container whose program knows no container.id, but its host's name, which Docker has made of it.
func TestNameThatIsAContainer(t *testing.T) {
	scope := "/system.slice/docker-" + idB + ".scope"
	here := Place{5202, scope, true}
	for _, test := range []struct {
		w     Who
		want  Place
		local bool
	}{
		{Who{HostName: idB[:13], PID: 7}, Place{}, false}, // of another length
		{Who{HostName: idB, PID: 7}, here, true},
		{Who{HostName: idB, HostID: otherID, PID: 7}, here, true}, // of the image
		{Who{HostName: idB, NodeName: "node-7", PID: 7}, here, true},
		{Who{HostName: idB, NodeName: "node-8"}, Place{5200, scope, true}, true},
		{Who{HostName: idB, PID: 99}, Place{5200, scope, true}, true}, // it has ended: the container
		{Who{HostName: idB, ContainerID: awayID, PID: 7}, Place{}, false},
		{Who{HostName: idB, ContainerID: hereID}, Place{4200, "/system.slice/docker-" + hereID + ".scope", true}, true},
		{Who{HostName: strings.ToUpper(idB), PID: 7}, Place{}, false},
		{Who{HostName: idB[:12], PID: 7}, Place{}, false}, // of two containers
		// A container that is not found changes nothing.
		{Who{HostName: awayID[:12], PID: 900}, Place{}, false},
		{Who{HostName: awayID, PID: 900}, Place{}, false},
		{Who{HostName: awayID[:12], HostID: ourID, PID: 900}, Place{PID: 900}, true},
		{Who{HostName: awayID[:12], HostID: otherID, PID: 900}, Place{}, false},
	} {
		l := New(machineOf(t, "docker_v2"), "node-7", false)
		for _, again := range []string{"", " again"} {
			if p, local := l.Find(test.w); p != test.want || local != test.local {
				t.Errorf("%+v%s: got %+v, %v, want %+v, %v", test.w, again, p, local, test.want, test.local)
			}
		}
	}
	short := Who{HostName: hereID[:12], PID: 9}
	l := New(machineOf(t, "docker_v1"), "", false)
	if p, local := l.Find(short); p != (Place{PID: 4201}) || !local {
		t.Errorf("got %+v, %v, want process 4201, true", p, local)
	}
	l = New(machineOf(t, "docker_v1"), "", false)
	l.us.name = short.HostName // a machine may be called so
	if p, local := l.Find(short); p != (Place{}) || !local {
		t.Errorf("our own name: %+v, %v", p, local)
	}
}

func TestCompareIDs(t *testing.T) {
	m := machine{id: ourID}
	for id, want := range map[string]relation{
		"":                                     unset,
		ourID:                                  ours,
		ourUUID:                                ours, // as a UUID
		strings.ToUpper(ourID):                 ours,
		otherID:                                another,
		otherID[1:]:                            unclear,
		"i-0123456789abcdef0":                  unclear, // a cloud's instance
		"4c4c4544-0051-3010-8043":              unclear,
		"4c4c4544-0051-3010-8043-b7c04f4e3132": unclear, // a mainboard's
		"-----":                                unclear,
		strings.Repeat("a", 1<<20):             unclear,
		ourID + "-":                            unclear,
		ourID + "\n":                           unclear,
		ourID + strings.Repeat("-", 1<<20):     unclear,
	} {
		if got := m.compareID(id); got != want {
			t.Errorf("%.50q: %v, want %v", id, got, want)
		}
	}
	if got := (&machine{}).compareID(ourID); got != unclear {
		t.Errorf("ours is not known: %v", got)
	}
	if got := (&machine{id: "ours-by-hand"}).compareID(ourID); got != unclear {
		t.Errorf("ours is no machine-id: %v", got)
	}
}

func TestCompareNames(t *testing.T) {
	for _, test := range []struct {
		ours, name string
		want       relation
	}{
		{"gpu1", "", unset},
		{"gpu1", "gpu1", ours},
		{"gpu1", "GPU1.", ours},
		{"gpu1", "gpu1.lab.example.org", ours},
		{"gpu1.lab.example.org", "gpu1", ours},
		{"gpu1.lab.example.org", "gpu1.lab.example.org.", ours},
		{"gpu1.lab.example.org", "gpu1.lab", unclear},
		{"gpu1.lab.example.org", "gpu1.hall.example.org", unclear},
		{"gpu1", "gpu10", unclear},
		{"gpu1", "gpu", unclear},
		{"gpu1", ".", unclear},
		{"gpu1", "..", unclear},
		{"gpu1", ".gpu1", unclear},
		{"", "gpu1", unclear},
		{"", ".", unclear},
		{"gpu1", "gpu1." + strings.Repeat("x", 1<<20), ours},
	} {
		if got := (&machine{name: test.ours}).compareName(test.name); got != test.want {
			t.Errorf("%q against %.50q: %v, want %v", test.ours, test.name, got, test.want)
		}
	}
}

// Some names show that the program runs outside of any container.
func TestOutside(t *testing.T) {
	m := machine{id: ourID, name: "gpu1", node: "node-7"}
	for _, test := range []struct {
		w    Who
		want bool
	}{
		{Who{}, false},
		{Who{HostName: "gpu1"}, true},
		{Who{HostID: ourID}, true},
		{Who{HostID: ourID, HostName: "gpu1"}, true},
		{Who{HostID: ourID, HostName: "web-5d9c"}, false}, // a container with our machine-id mounted
		{Who{HostID: otherID, HostName: "gpu1"}, false},
		{Who{HostID: "i-0123456789abcdef0", HostName: "gpu1"}, true},
		{Who{NodeName: "node-7"}, false},
	} {
		if _, got := m.isLocal(&test.w); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.w, got, test.want)
		}
	}
}
