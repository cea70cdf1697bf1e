package agent

import (
	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/internal/drives"
	"github.com/stallspan/stallspan/internal/monitor"
)

// smartConfig says how the disks are asked for their health.
type smartConfig struct {
	given    bool // the section is there
	off      bool
	smartctl string
	sudo     bool
	disks    []drives.Disk
}

func (c *smartConfig) read(n *yaml.Node) error {
	c.given = n.Tag != "!!null"
	enabled := true
	err := keys{
		"enabled":  truth(&enabled),
		"smartctl": plain(&c.smartctl),
		"sudo":     truth(&c.sudo),
		"disks":    c.readDisks,
	}.read(n)
	c.off = !enabled
	return err
}

func (c *smartConfig) readDisks(n *yaml.Node) error {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return wrong(n, "a list of disks, each behind a dash")
	}
	for _, item := range n.Content {
		d, enabled := drives.Disk{}, true
		read := keys{"device": plain(&d.Device), "type": plain(&d.Type), "enabled": truth(&enabled)}.read
		if err := checked(read, func() error { return monitor.CheckDisk(d) })(item); err != nil {
			return err
		}
		d.Off = !enabled
		c.disks = append(c.disks, d)
	}
	return nil
}

// monitor is what the monitor is told, nil for nothing. The history lies beside the baselines.
func (c *smartConfig) monitor(baselines string) *monitor.Drives {
	s := monitor.Smart{Given: c.given, Off: c.off, Smartctl: c.smartctl, Sudo: c.sudo, Disks: c.disks}
	return s.Drives(monitor.Slow{Baseline: baselines})
}

func truth(into *bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Tag != "!!bool" || n.Decode(into) != nil {
			return wrong(n, "true or false")
		}
		return nil
	}
}
