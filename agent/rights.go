package agent

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/daemon"
	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/trust"
)

// giveUpFileRights gives up what the setuid bit or the capabilities of the program's file would give to all its users.
func giveUpFileRights() error {
	if !trust.Elevated() {
		return nil
	}
	path, _ := os.Executable()
	cli.Say("warning: %s is setuid or setgid, or has file capabilities: it runs without them, and so do its children. "+
		"see stallspan docs agent for the rights of a service", path)
	if err := trust.Needs(trust.None); err != nil {
		return fmt.Errorf("the rights of this program's file cannot be given up, remove them: %w", err)
	}
	return nil
}

// capabilities are the commands that can use capabilities, by the first word after stallspan. Others give them up. The
// agent's helpers have what is missing here.
var capabilities = map[string]trust.Set{
	daemon.Name: trust.Drives, "bench": trust.Machine, "check": trust.Machine, "health": trust.Machine,
	"load":   trust.Machine,
	"record": trust.Machine, "stat": trust.Machine, "support-bundle": trust.Machine, "top": trust.Machine,
	"demo": trust.All, "mark": trust.All, "run": trust.All,
}

// giveUpCapabilities gives up the capabilities of a user other than root that the command cannot use.
func giveUpCapabilities(cmd *cobra.Command) error {
	for cmd.Parent() != nil && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	keep := capabilities[cmd.Name()]
	if cmd.Name() == daemon.Name {
		if err := helper.Separate(keep); err != nil {
			return fmt.Errorf("the agent's capabilities cannot be moved to helpers: %w", err)
		}
	}
	if err := trust.Needs(keep); err != nil {
		return fmt.Errorf("capabilities that %s cannot use cannot be given up: %w", cmd.Name(), err)
	}
	return nil
}
