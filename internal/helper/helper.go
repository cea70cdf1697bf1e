// Package helper separates the privileges of the agent, and of a Collector that is asked to. A program with
// capabilities starts helpers before it reads anything of users, and gives the capabilities up. Each helper is this
// program, too, and answers a few fixed questions over a socketpair. It has a seccomp filter, and knows no config,
// library, file name or network.
//
//	agent, without capabilities
//	  keeper: starts each helper again when it ends; reads nothing
//	    reader: what the kernel shows of other users' processes only to those who may trace them
//	    tracer: loads the programs that follow the scheduler, and says which threads they follow
//	    spare: becomes the keeper when that ends, and starts a spare of its own
//
// Keeper and spare hold the helpers' ends of the sockets, too, so that the next helper goes on with the same one.
package helper

import "time"

// name is the name under which this program is the keeper or a helper.
const name = "stallspan-helper"

// The exit statuses of a keeper and of a helper.
const (
	exitDone   = 0 // the agent is gone
	exitFailed = 1 // a helper has sent the reason
	exitFrame  = 3 // a frame was damaged: the agent is not to be trusted, or has another version
)

// How long the agent waits.
const (
	startWait  = 10 * time.Second // for the first helpers: a machine that boots is slow
	answerWait = time.Second
	// maxLate is how many answers in a row may be late, or how many times answerWait none may come, until a helper is
	// killed.
	maxLate = 3
)

// Helpers are those that Separate has started; nil for one that has not.
type Helpers struct {
	Root   string // where the host's files are for them, as /hostfs in a container
	Reader *Client
	Tracer *Tracer
	end    func() // waits for the keeper
}

// Close ends them.
func (h Helpers) Close() {
	if h.Reader != nil {
		h.Reader.close()
	}
	if h.Tracer != nil {
		h.Tracer.close()
	}
	if h.end != nil {
		h.end()
	}
}
