package monitor

import (
	"path/filepath"

	"github.com/stallspan/stallspan/internal/identity"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// names finds out who the processes of this machine are.
type names struct {
	proc   string
	finder *identity.Finder
	owners *locate.Owners
}

func newNames(root, kubelet string) *names {
	return &names{
		filepath.Join("/", root, "proc"), identity.New(root, identity.Options{PodResources: kubelet}), locate.NewOwners(root),
	}
}

// of returns who a process is that holds memory of GPUs, or all processes of its group. Some of it is found in the
// background, and is in a later answer.
func (n *names) of(pid int, group string, gpus []string) sample.JobName {
	found := n.finder.Of(pid, gpus...)
	if group != "" {
		found = found.OfGroup(group)
	}
	client, err := procfile.Do(n.proc, pid, func() string { return n.owners.Client(pid) })
	if err != nil {
		client = locate.Unknown
	}
	name := sample.JobName{Name: found.Name, User: found.User, Client: client}
	for _, a := range found.Attributes {
		name.Attributes = append(name.Attributes, sample.Attribute{Key: a.Key, Value: a.Value})
	}
	return name
}

// close waits for what runs in the background.
func (n *names) close() {
	if n != nil {
		n.finder.Close()
	}
}
