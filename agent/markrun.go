package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/api"
)

// A watcher that hangs holds up the program for no longer than this, at its start and at its end.
const markTimeout = 2 * time.Second

func markRunCommand() *cobra.Command {
	var o markOptions
	cmd := &cobra.Command{
		Use:   "run --kind KIND [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a program as one window",
		Long: `Begins a window, runs a program with its input, output, signals and exit code untouched, and ends the window. One line
on standard error says what was found. Where nobody answers, the program runs all the same.`,
		Example: `  stallspan mark run --kind model_load --model resnet50 -- ./load-model`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("mark run needs a program: stallspan mark run --kind custom -- ./work")
			}
			a, err := o.announcement(cmd)
			if err != nil {
				return err
			}
			if a.PID == 0 {
				a.PID = os.Getpid() // the program is below it
			}
			return markRun(context.WithoutCancel(cmd.Context()), a, args) // a ^C is the program's
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.add(cmd, "the process whose work it is, with those below it (default: the program)")
	return cmd
}

// markRun runs a program in a window of its own. Nothing that goes wrong with the window stops the program.
func markRun(ctx context.Context, a api.Announcement, argv []string) error {
	// Notify first: a signal that comes while the window begins is for the program, too.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed()...)
	defer signal.Stop(signals)

	client := api.NewClient(api.DefaultSocket())
	begun := markStart(ctx, client, a)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = os.Environ()
	if begun.Traceparent != "" {
		cmd.Env = append(cmd.Env, "TRACEPARENT="+begun.Traceparent)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		markStop(ctx, client, begun, true, func(string, ...any) {}) // why it could not start is the line to read
		return cannotStart(argv[0], err)
	}
	code := waitFor(cmd, signals)
	markStop(ctx, client, begun, code != 0, say)
	if code != 0 {
		return exit(code)
	}
	return nil
}

// markStart begins the window. Without one, begun has no id.
func markStart(ctx context.Context, client *api.Client, a api.Announcement) (begun api.Begun) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	begun, err := client.Begin(ctx, a)
	if err != nil {
		say("the program runs unwatched: %v", unanswered(err))
	}
	return begun
}

func markStop(ctx context.Context, client *api.Client, begun api.Begun, failed bool, tell func(string, ...any)) {
	if begun.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	report, err := endWindow(ctx, client, begun.ID, failed)
	if err != nil {
		tell("the window could not be ended: %v", unanswered(err))
		return
	}
	tell("%s", told(report, false))
}

// waitFor passes signals on until the program has exited, and gives the code that a shell would.
func waitFor(cmd *exec.Cmd, signals <-chan os.Signal) int {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its error only repeats the state
	}()
	for {
		select {
		case s := <-signals:
			passSignal(cmd.Process, s)
		case <-exited:
			return shellCode(cmd.ProcessState)
		}
	}
}
