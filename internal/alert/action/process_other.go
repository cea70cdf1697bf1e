//go:build !linux

package action

import "os/exec"

func start(cmd *exec.Cmd) error { return cmd.Start() }

// wait waits for a program and kills the rest of its process group.
func wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = cmd.Cancel() // fails if the group is empty
	return err
}
