package helper

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
)

// connection asks one helper after the other over the same socket, each question by its number. It is safe for
// concurrent use, and waits for an answer without a lock.
type connection struct {
	role string             // what its helper does, for errors
	conn io.ReadWriteCloser // one Read or Write is one packet
	done chan struct{}      // closed when no more frames are read

	mu             sync.Mutex
	number         uint32                 // of the newest question
	waiting        map[uint32]chan answer // for the answer to a question
	failing        error                  // no use to ask
	lives          uint64                 // counts the helpers that have greeted
	lates          int                    // answers in a row that were late
	watchdog       *time.Timer            // runs while no answer comes
	helper, keeper *os.Process            // nil if unknown
	killed         bool                   // the helper was, since its hello
	greeted        chan struct{}          // closed at the first hello, or reason why none comes
	note           func(error)            // called when no helper answers any more; nil for none
}

// answer is the content of an answer, or an error.
type answer struct {
	op          op
	body        []byte
	content     // of the body
	descriptors []int
	life        uint64 // of the helper that answers
	err         error
}

// connect asks over a connection that keeps the limits of packets.
func connect(conn io.ReadWriteCloser, role string) *connection {
	c := &connection{role: role, conn: conn, done: make(chan struct{}), waiting: map[uint32]chan answer{},
		greeted: make(chan struct{})}
	go c.receive()
	return c
}

// refused is a connection to a helper without a keeper.
func refused(role, why string) *connection {
	c := &connection{role: role, greeted: make(chan struct{})}
	c.fail(gone("the helper " + role + " cannot be started: " + why))
	return c
}

// away is an error of a helper. It is the same each time, since every new text becomes a problem of its own.
func (c *connection) away(what string) error { return bpf.Away("the helper " + c.role + " " + what) }

func (c *connection) errLate() error { return c.away("does not respond") }

func (c *connection) errEnded(why string) error {
	if why != "" {
		return c.away("cannot work, and is tried again: " + why)
	}
	return c.away("has ended and is started again")
}

// gone is an error of a helper that is not started again: nothing is left that has the capabilities.
type gone string

func (g gone) Error() string { return string(g) }

func (c *connection) errGone() error {
	return gone("the helper " + c.role + " is gone with its keepers: start this program again")
}

// errAnswer is for an answer without a meaning.
func (c *connection) errAnswer() error { return c.away("sends damaged frames") }

// OnFailure has note called each time that no helper answers any more, at once if none does.
func (c *connection) OnFailure(note func(error)) {
	c.mu.Lock()
	c.note = note
	failing := c.failing
	c.mu.Unlock()
	if failing != nil {
		note(failing)
	}
}

// noted reports a failure, without the lock.
func (c *connection) noted(why error) {
	c.mu.Lock()
	note := c.note
	c.mu.Unlock()
	if note != nil && why != nil {
		note(why)
	}
}

// close ends the helper.
func (c *connection) close() {
	c.OnFailure(func(error) {}) // it is no failure
	if c.conn == nil {
		return // it has had no keeper
	}
	_ = c.conn.Close() // it has nothing to lose
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest()
	c.know(0, 0)
}

// receive takes frames until the connection ends.
func (c *connection) receive() {
	defer close(c.done)
	why := c.errGone()
	if err := sample.Protect(c.take); err != nil {
		_ = c.conn.Close()
		why = err
	}
	c.fail(why)
}

// take is receive without its end.
func (c *connection) take() {
	buf := make([]byte, maxAnswer+1)
	for {
		n, descriptors, err := c.read(buf)
		if err != nil || n == 0 {
			closeAll(descriptors)
			return
		}
		o, number, body, err := split(buf[:n])
		switch {
		case err != nil || n > maxAnswer:
			c.distrust()
		case o == opHello:
			var helper, keeper int
			in := codec{reads: true, rest: body}
			in.pid(&helper)
			in.pid(&keeper)
			if in.end() == nil {
				c.greet(helper, keeper)
			}
		case o == opEnded:
			c.fail(c.errEnded(string(body)))
		case c.deliver(number, answer{op: o, body: append([]byte(nil), body...), descriptors: descriptors}):
			continue
		}
		closeAll(descriptors) // of a question that was given up
	}
}

// read takes a packet, with the descriptors that come with it.
func (c *connection) read(buf []byte) (n int, descriptors []int, err error) {
	socket, ok := c.conn.(*net.UnixConn)
	if !ok {
		n, err = c.conn.Read(buf)
		return n, nil, err
	}
	var rights [64]byte
	n, control, _, _, err := socket.ReadMsgUnix(buf, rights[:])
	messages, _ := unix.ParseSocketControlMessage(rights[:control])
	for i := range messages {
		list, _ := unix.ParseUnixRights(&messages[i])
		descriptors = append(descriptors, list...)
	}
	return n, descriptors, err
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}

// over returns why the helper of a life answers no more; nil if it may. It does not wait.
func (c *connection) over(life uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case life != c.lives:
		return c.errEnded("")
	case errors.Is(c.failing, c.errLate()):
		return nil // it is to be killed if that lasts
	}
	return c.failing
}

// greet notes that a helper answers.
func (c *connection) greet(helper, keeper int) {
	c.mu.Lock()
	c.lives++
	c.know(helper, keeper)
	c.mu.Unlock()
	c.fail(nil)
}

// know keeps hold of helper and keeper, 0 for none.
func (c *connection) know(helper, keeper int) {
	for _, p := range []*os.Process{c.helper, c.keeper} {
		if p != nil {
			_ = p.Release()
		}
	}
	c.helper, c.keeper, c.killed = nil, nil, false
	if helper > 0 {
		c.helper, _ = os.FindProcess(helper)
		c.keeper, _ = os.FindProcess(keeper)
	}
}

// fail sets why it is of no use to ask from now on; nil if it is.
func (c *connection) fail(why error) {
	defer c.noted(why)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest()
	c.failing, c.lates = why, 0
	if why == nil {
		why = c.errEnded("") // the questions before were asked of another helper
	}
	for number, to := range c.waiting {
		delete(c.waiting, number)
		to <- answer{err: why}
	}
	select {
	case <-c.greeted:
	default:
		close(c.greeted)
	}
}

// distrust kills a helper whose frames have no meaning.
func (c *connection) distrust() {
	c.fail(c.errAnswer())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill()
}

// deliver reports whether a question waited for the answer.
func (c *connection) deliver(number uint32, a answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.failing, c.errLate()) {
		c.failing = nil
	} else {
		c.lates = 0
	}
	c.rest()
	to := c.waiting[number]
	if to == nil {
		return false
	}
	delete(c.waiting, number)
	a.life = c.lives
	to <- a
	return true
}

// ask sends a question and returns its answer.
func (c *connection) ask(q *question, wait time.Duration) (answer, error) {
	to := make(chan answer, 1)
	c.mu.Lock()
	if c.failing != nil {
		defer c.mu.Unlock()
		return answer{}, c.failing
	}
	c.number++
	q.number = c.number
	c.waiting[q.number] = to
	c.mu.Unlock()
	if _, err := c.conn.Write(q.append(make([]byte, 0, maxQuestion))); err != nil {
		c.forget(q.number)
		return answer{}, c.errGone()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case a := <-to:
		if a.err == nil && (a.op != q.op || a.parse(a.body, q.op) != nil) {
			closeAll(a.descriptors)
			return answer{}, c.errAnswer()
		}
		return a, a.err
	case <-timer.C:
	}
	if !c.forget(q.number) {
		closeAll((<-to).descriptors) // it came at this moment
	}
	c.late(wait)
	c.noted(c.errLate())
	return answer{}, c.errLate()
}

// forget waits no longer for an answer. It reports whether that had not come.
func (c *connection) forget(number uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waits := c.waiting[number]
	delete(c.waiting, number)
	return waits
}

// late has no questions asked until an answer comes. It kills a helper that is late again and again, or with what takes
// long anyway.
func (c *connection) late(wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil {
		return
	}
	c.failing = c.errLate()
	if c.lates++; c.lates >= maxLate || wait > answerWait {
		c.kill()
	}
	c.watch()
}

// watch kills a helper from which nothing comes.
func (c *connection) watch() {
	c.rest()
	var own *time.Timer
	own = time.AfterFunc((maxLate-1)*answerWait, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watchdog == own {
			c.kill()
			c.watch()
		}
	})
	c.watchdog = own
}

// rest ends watch.
func (c *connection) rest() {
	if c.watchdog != nil {
		c.watchdog.Stop()
		c.watchdog = nil
	}
}

// kill kills the helper, and its keeper if that has not started another one.
func (c *connection) kill() {
	p := c.helper
	if c.killed {
		p = c.keeper
	}
	if p != nil {
		_ = p.Kill() // it may have ended
	}
	c.killed = true
}
