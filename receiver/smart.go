package receiver

import (
	"go.opentelemetry.io/collector/confmap"

	"github.com/stallspan/stallspan/internal/monitor"
)

// SmartConfig is how drives are asked for their health, with the keys of the agent's config. Where nothing is said, they are
// asked if smartctl is there.
type SmartConfig struct {
	Enabled  bool        `mapstructure:"enabled"`
	Smartctl string      `mapstructure:"smartctl"` // its path
	Sudo     bool        `mapstructure:"sudo"`     // have sudo run it
	Disks    []SmartDisk `mapstructure:"disks"`    // what is to be asked otherwise than by itself

	given bool
}

// SmartDisk is what is said of one disk.
type SmartDisk struct {
	Device  string `mapstructure:"device"` // as in /dev/sda
	Type    string `mapstructure:"type"`   // smartctl's --device
	Enabled bool   `mapstructure:"enabled"`
}

// Unmarshal notes that something was said: "smart:" with nothing behind it says nothing.
func (c *SmartConfig) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	c.given = len(conf.AllKeys()) > 0
	return nil
}

// Unmarshal has a disk asked of which nothing else is said.
func (d *SmartDisk) Unmarshal(conf *confmap.Conf) error {
	if err := conf.Unmarshal(d); err != nil {
		return err
	}
	d.Enabled = d.Enabled || conf.Get("enabled") == nil
	return nil
}

func (c *SmartConfig) monitor() *monitor.Smart {
	s := &monitor.Smart{Given: c.given, Off: !c.Enabled, Smartctl: c.Smartctl, Sudo: c.Sudo}
	for _, d := range c.Disks {
		s.Disks = append(s.Disks, monitor.SmartDisk{Device: d.Device, Type: d.Type, Off: !d.Enabled})
	}
	return s
}
