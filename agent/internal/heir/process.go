package heir

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// init makes a process of this program an heir. It does so before larger packages are initialized, which would cost the
// heir more memory than its work.
func init() {
	if len(os.Args) > 0 && os.Args[0] == name {
		os.Exit(serve(os.Args[1:]))
	}
}

// output is an Output of an heir.
type output struct {
	from, to *os.File
	done     bool // dropped, or being copied
}

// killed is printed where the program's errors go.
const killed = "stallspan: run was killed, so there will be no report\n"

// serve is the heir. Its argument is the number of outputs.
func serve(arguments []string) (code int) {
	// It ends when the program's outputs end. Signals are for the program.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGPIPE)
	life, outputs := inherited(arguments)
	if len(outputs) == 0 {
		return 1
	}
	var copying sync.WaitGroup
	for order := make([]byte, 1); ; {
		if _, err := io.ReadFull(life, order); err != nil {
			break // the first process has ended
		}
		k := int(order[0] / commands)
		if k >= len(outputs) || outputs[k].done {
			continue
		}
		o := outputs[k]
		o.done = true
		switch order[0] % commands {
		case drop:
			o.close()
		case pass:
			copying.Go(o.copy)
		case discard:
			_ = o.to.Close()
			o.to = nil
			copying.Go(o.copy)
		}
	}
	said := false
	for k := len(outputs) - 1; k >= 0; k-- {
		if o := outputs[k]; !o.done {
			if !said {
				_ = WriteAll(o.to, []byte(killed))
				said = true
			}
			copying.Go(o.copy)
		}
	}
	copying.Wait()
	return 0
}

// inherited returns the files that Start has passed on: the pipe that ends with the first process, and the outputs.
func inherited(arguments []string) (life *os.File, outputs []*output) {
	if len(arguments) != 1 {
		return nil, nil
	}
	count, _ := strconv.Atoi(arguments[0])
	fd := uintptr(3) // cmd.ExtraFiles begin there
	open := func() *os.File {
		fd++
		return os.NewFile(fd-1, name)
	}
	life = open()
	for range count {
		from := open()
		outputs = append(outputs, &output{from: from, to: open()})
	}
	return life, outputs
}

// copy passes on what comes until its end, or until its reader is gone.
func (o *output) copy() {
	defer o.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := o.from.Read(buf)
		if o.to != nil && WriteAll(o.to, buf[:n]) != nil {
			return
		}
		if err != nil {
			return // io.EOF; EIO when the last process has closed a terminal
		}
	}
}

func (o *output) close() {
	_ = o.from.Close()
	if o.to != nil {
		_ = o.to.Close()
	}
}

// WriteAll writes all of b. A program that shares the output may have made it non-blocking. Then WriteAll waits while
// it is full.
func WriteAll(to *os.File, b []byte) error {
	for {
		n, err := to.Write(b)
		if b = b[n:]; !errors.Is(err, unix.EAGAIN) {
			return err
		}
		wait := []unix.PollFd{{Fd: int32(to.Fd()), Events: unix.POLLOUT}}
		if _, err := unix.Poll(wait, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return errors.Join(io.ErrShortWrite, err)
		}
	}
}
