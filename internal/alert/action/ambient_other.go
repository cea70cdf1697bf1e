//go:build !linux

package action

import "os/exec"

func start(cmd *exec.Cmd) error { return cmd.Start() }
