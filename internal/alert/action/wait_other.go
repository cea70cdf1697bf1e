//go:build !linux

package action

import "os/exec"

// wait waits for a program and kills what is left of its process group.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = cmd.Cancel() // fails if the group is empty
	return err
}
