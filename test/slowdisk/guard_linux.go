package slowdisk

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// answerTime is the time limit of the server for an order.
const answerTime = 20 * time.Second

// guard is the parent's end of a Disk's server.
type guard struct {
	command *exec.Cmd
	orders  *os.File
	answers *os.File
	decoder *json.Decoder
}

// startGuard starts this program again as the server of the folder base.
func startGuard(base string) (*guard, error) {
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		_, _ = inRead.Close(), inWrite.Close()
		return nil, err
	}
	command := exec.Command("/proc/self/exe")
	command.Args[0] = os.Args[0]
	command.Env = append(os.Environ(), guardVariable+"="+base)
	command.Stdin, command.Stdout, command.Stderr = inRead, outWrite, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keep the terminal's signals away from it
	err = command.Start()
	_, _ = inRead.Close(), outWrite.Close()
	if err != nil {
		_, _ = inWrite.Close(), outRead.Close()
		return nil, fmt.Errorf("the server of a slow disk cannot be started: %w", err)
	}
	return &guard{command: command, orders: inWrite, answers: outRead, decoder: json.NewDecoder(outRead)}, nil
}

func (g *guard) do(o order) error {
	if err := json.NewEncoder(g.orders).Encode(o); err != nil {
		return fmt.Errorf("the server of a slow disk is gone: %w", err)
	}
	if err := g.answers.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	var a answer
	if err := g.decoder.Decode(&a); err != nil {
		return fmt.Errorf("the server of a slow disk does not answer: %w", err)
	}
	if a.Error != "" {
		return errors.New(a.Error)
	}
	return nil
}

// stop ends the server, which removes all that is left, and waits for it.
func (g *guard) stop() error {
	_, _ = g.orders.Close(), g.answers.Close()
	kill := time.AfterFunc(2*orphaned, func() { _ = g.command.Process.Kill() })
	defer kill.Stop()
	if err := g.command.Wait(); err != nil {
		return fmt.Errorf("the server of a slow disk: %w", err)
	}
	return nil
}
