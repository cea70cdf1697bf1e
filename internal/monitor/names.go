package monitor

import (
	"github.com/stallspan/stallspan/internal/identity"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/sample"
)

// names finds out who the processes of this machine are.
type names struct{ finder *identity.Finder }

func newNames(root, kubelet string, owners *locate.Owners) *names {
	return &names{identity.New(root, identity.Options{Owners: owners, PodResources: kubelet})}
}

// of returns who a process is that holds memory of GPUs, or all processes of its group. Some of it is found in the
// background, and is in a later answer.
func (n *names) of(pid int, group string, gpus []string) sample.JobName {
	found := n.finder.Of(pid, gpus...)
	if group != "" {
		found = found.OfGroup(group)
	}
	name := sample.JobName{Name: found.Name, User: found.User, Client: found.Client}
	for _, a := range found.Attributes {
		name.Attributes = append(name.Attributes, sample.Attribute{Key: a.Key, Value: a.Value, Claimed: a.Claimed})
	}
	return name
}

// close waits for what runs in the background.
func (n *names) close() {
	if n != nil {
		n.finder.Close()
	}
}
