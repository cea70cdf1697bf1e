// Package helper separates the privileges of the agent. A service with capabilities starts helpers before it reads
// anything of users, and gives the capabilities up. A helper is this program, too. Each answers a few fixed questions
// over a socketpair. It has a seccomp filter, and knows no config, library, file name or network.
//
//	agent, without capabilities
//	  keeper: starts the reader again when it ends; reads nothing
//	    reader: what the kernel shows of other users' processes only to those who may trace them
//	  keeper
//	    tracer: loads the programs that follow the scheduler, and says which threads they follow
//
// A keeper holds the helper's end of the socket, too, so that the next helper goes on with the same one.
package helper

import (
	"errors"
	"time"
)

// name is the name under which this program is the keeper or the helper.
const name = "stallspan-helper"

// The exit statuses of a helper.
const (
	exitDone   = 0 // the agent is gone
	exitFailed = 1
	exitFrame  = 3 // a frame was damaged: the agent is not to be trusted, or has another version
)

// How long the agent waits.
const (
	startWait  = 30 * time.Second // for the first helper: a machine that boots is slow
	answerWait = time.Second
)

// Errors of questions. They are the same each time, since every new text becomes a problem of its own.
var (
	errEnded  = errors.New("the helper that reads them has ended and is started again")
	errLate   = errors.New("the helper that reads them does not respond")
	errClosed = errors.New("the helper that reads them is gone: restart the agent")
	errAnswer = errors.New("the helper that reads them sends damaged frames: restart the agent")
)

// Helpers are those that Separate has started; nil for one that has not.
type Helpers struct {
	Reader *Client
	Tracer *Tracer
}

// Close ends them.
func (h Helpers) Close() {
	if h.Reader != nil {
		_ = h.Reader.Close() // it has nothing to lose
	}
	if h.Tracer != nil {
		_ = h.Tracer.Close()
	}
}
