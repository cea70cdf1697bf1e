package process

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// connections are the TCP connections of jobs. Which sockets are a job's is known from the open files of its processes.
// Those in another network namespace are not seen.
type connections struct {
	source  *tcp.Source
	mount   int // of all sockets; 0 if it is not known
	open    []*connection
	inodes  map[uint32]bool   // of open, and of sockets that are no connections that can be seen
	wanted  map[uint32]wanted // sockets of jobs that are not known yet
	peers   []*peer           // of all jobs
	forgot  time.Duration     // when inodes was made
	readAt  time.Duration
	listAt  time.Duration // no list is made before
	edgesAt time.Duration // no reading for an edge before
}

// wanted is a socket of a job.
type wanted struct {
	job *job
	old bool
}

// connection is an open connection of a job.
type connection struct {
	tcp.Socket
	job  *job
	peer *peer
}

// peer is a peer of a job, with its connections' shortest round trips.
type peer struct {
	sample.Peer
	job *job
}

const (
	maxConnections = 1024 // of all jobs
	maxInodes      = 16384
	maxPeers       = 96 // of all jobs
	maxJobPeers    = 16

	// A list of all sockets takes milliseconds, and a connection microseconds. So they take 0.5 % of a core at most; with
	// edges, 2 %.
	listPause = 200
	edgePause = 50
)

func newConnections() *connections {
	return &connections{source: tcp.New(), mount: tcp.MountID(), inodes: map[uint32]bool{}, wanted: map[uint32]wanted{}}
}

// isSocket reports whether an open file is a socket.
func (c *connections) isSocket(f OpenFile) bool {
	return c != nil && c.mount != 0 && f.Mount == c.mount && f.Inode != 0
}

// want notes a socket of a job. An old one may have been there before the job was followed.
func (c *connections) want(j *job, inode uint32, old bool) {
	if _, known := c.inodes[inode]; known || len(c.wanted) >= maxInodes {
		return
	}
	if _, noted := c.wanted[inode]; !noted {
		c.wanted[inode] = wanted{j, old}
	}
}

// leave forgets a job.
func (c *connections) leave(j *job) {
	if c == nil {
		return
	}
	c.open = slices.DeleteFunc(c.open, func(one *connection) bool { return one.job == j })
	c.peers = slices.DeleteFunc(c.peers, func(p *peer) bool { return p.job == j })
	for inode, w := range c.wanted {
		if w.job == j {
			delete(c.wanted, inode)
		}
	}
}

func (c *connections) close() {
	if c != nil {
		c.source.Close()
	}
}

// read reads the connections, once a second and for edges, and appends the peers.
func (c *connections) read(out *sample.Sample, now time.Duration) error {
	if c == nil || len(c.open)+len(c.wanted)+len(c.peers) == 0 {
		return nil
	}
	due := now-c.readAt >= scanInterval || out.Edge && now >= c.edgesAt
	lists := len(c.wanted) > 0 && now >= c.listAt
	if !due && !lists {
		return nil
	}
	began := sample.Now().Mono
	c.readAt = now
	c.open = slices.DeleteFunc(c.open, func(one *connection) bool { return !c.refresh(one) })
	c.edgesAt = now + edgePause*(sample.Now().Mono-began)
	var err error
	if lists {
		began := sample.Now().Mono
		err = c.list(now)
		c.listAt = now + listPause*(sample.Now().Mono-began)
	}
	c.emit(out)
	return err
}

// refresh reads a connection, and reports whether it is open.
func (c *connections) refresh(one *connection) bool {
	was := one.Socket
	open, err := c.source.Refresh(&one.Socket)
	if err != nil {
		return true // try again
	}
	if !open {
		delete(c.inodes, was.Inode)
		one.peer.Closed++
		return false
	}
	one.peer.add(&one.Socket, &was)
	return true
}

// list finds the wanted sockets.
func (c *connections) list(now time.Duration) error {
	if now-c.forgot >= forgetEvery || len(c.inodes) >= maxInodes {
		clear(c.inodes) // what is no connection now may become one, and inodes are used again
		for _, one := range c.open {
			c.inodes[one.Inode] = true
		}
		c.forgot = now
	}
	ports := map[uint16]bool{}
	var found []tcp.Socket
	err := c.source.List(func(s *tcp.Socket) {
		if s.Listening {
			ports[s.Local.Port()] = true
		} else if _, is := c.wanted[s.Inode]; is {
			found = append(found, *s)
		}
	})
	for i := range found {
		s := &found[i]
		w := c.wanted[s.Inode]
		if len(c.open) >= maxConnections {
			break
		}
		p := c.peerOf(w.job, s, ports[s.Local.Port()])
		if p == nil {
			continue
		}
		var before tcp.Socket
		if w.old {
			before = *s
		}
		p.Opened++
		p.add(s, &before)
		c.open = append(c.open, &connection{*s, w.job, p})
	}
	for inode := range c.wanted {
		c.inodes[inode] = true
	}
	clear(c.wanted)
	return err
}

// peerOf returns the peer of a connection. One that finds no room counts with all others on its port; nil if these find
// none either.
func (c *connections) peerOf(j *job, s *tcp.Socket, accepted bool) *peer {
	address, more := s.Remote.String(), "*:"+strconv.Itoa(int(s.Remote.Port()))
	if accepted {
		address, more = s.Local.String(), "*:"+strconv.Itoa(int(s.Local.Port()))
	}
	for _, name := range []string{address, more} {
		of := 0
		for _, p := range c.peers {
			if p.job == j {
				of++
			}
			if p.job == j && p.Accepted == accepted && p.Address == name {
				return p
			}
		}
		if most := maxJobPeers; len(c.peers) < maxPeers && (of < most-1 || name == more && of < most) {
			p := &peer{sample.Peer{Job: j.id, Address: name, Accepted: accepted}, j}
			c.peers = append(c.peers, p)
			return p
		}
	}
	return nil
}

// add adds what a connection moved since an earlier reading.
func (p *peer) add(s, was *tcp.Socket) {
	p.Received += s.Received - min(was.Received, s.Received)
	p.Sent += s.Sent - min(was.Sent, s.Sent)
	p.Messages += uint64(s.Messages - was.Messages)
	p.Packets += uint64(s.Packets - was.Packets)
	p.OutOfOrder += uint64(s.OutOfOrder - was.OutOfOrder)
	p.Window = max(p.Window, uint64(s.ReceiveSpace))
	if s.MinRTT > 0 && (p.MinRTT == 0 || s.MinRTT < p.MinRTT) {
		p.MinRTT = s.MinRTT
	}
}

// emit appends the peers of all jobs, in a fixed order.
func (c *connections) emit(out *sample.Sample) {
	for _, p := range c.peers {
		p.Connections = 0
	}
	for _, one := range c.open {
		one.peer.Connections++
	}
	for _, p := range c.peers {
		out.Peers = append(out.Peers, p.Peer)
	}
	slices.SortFunc(out.Peers, func(a, b sample.Peer) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Address, b.Address))
	})
}
