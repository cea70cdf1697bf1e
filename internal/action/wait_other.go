//go:build !linux

package action

import "os/exec"

// wait waits for a program's end, and kills what is left of its process group.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = cmd.Cancel() // nobody may be left
	return err
}
