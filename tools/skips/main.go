// Command skips runs a command, such as `go test -json ./...`, and fails if a test is skipped for no reason that this
// machine explains.
//
//	hack/tool.sh skips COMMAND [ARGUMENT ...]
//	hack/tool.sh skips -abilities
//
// It prints what `go test` prints without -json and, last, how many tests ran and why the others did not. A line of the
// command that begins with "skipped: " counts like a skipped test: so says a bench that cannot run here.
// .ci/expected-skips lists the abilities of a machine and the skips that the lack of each explains. -abilities prints
// which ones are here.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "skips:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	text, err := os.ReadFile(".ci/expected-skips")
	if err != nil {
		return err
	}
	a, err := parse(string(text))
	switch {
	case err != nil:
		return err
	case len(args) == 0:
		return errors.New("name a command, or -abilities")
	case args[0] == "-abilities":
		fmt.Println(a)
		return nil
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := report{out: os.Stdout}
	err = r.read(lines)
	failed := cmd.Wait()
	unexplained := r.judge(a)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return fmt.Errorf("%s: %w", strings.Join(args, " "), failed)
	case unexplained > 0:
		const hint = "if the machine has changed, go clean -testcache"
		return fmt.Errorf("nothing that this machine lacks explains %d skips; %s", unexplained, hint)
	}
	return nil
}
