//go:build !unix

package action

import (
	"errors"
	"os/exec"
)

type identity struct{}

func whom(name string) (*identity, error) {
	if name != "" {
		return nil, errors.New("exec cannot start programs as another user on this system: leave user out")
	}
	return nil, nil
}

func (p *program) apart(*exec.Cmd) {}
