package process

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// Opener says which connections were opened and closed. It is implemented by schedule.Source.
type Opener interface {
	// EachConnection calls visit for each connection that was established or closed since the last call, among those that
	// followed threads opened, in any network namespace. It reports whether these are all.
	EachConnection(visit func(*tcp.Change)) (all bool)
}

// connections are the TCP connections of jobs. Which sockets are a job's is known from an Opener, and from the open
// files of its processes: these may be older than the job, or accepted. Those in another network namespace are only
// known from an Opener, with what they moved until they were closed.
type connections struct {
	source  *tcp.Source
	opener  Opener // nil for none
	mount   int    // of all sockets; 0 if it is not known
	space   uint32 // network namespace of this program; 0 if it is not known
	open    []*connection
	inodes  map[uint32]bool   // of open, and of sockets that are no connections that can be seen
	wanted  map[uint32]wanted // sockets of jobs that are not known yet
	peers   []*peer           // of all jobs
	forgot  time.Duration     // when inodes was made
	readAt  time.Duration
	listAt  time.Duration // no list is made before
	edgesAt time.Duration // no reading for an edge before
	changed bool          // by an Opener, since the last reading
}

// wanted is a socket of a job.
type wanted struct {
	job *job
	old bool
}

// connection is an open connection of a job.
type connection struct {
	tcp.Socket
	job     *job
	peer    *peer
	known   bool          // by an Opener, which also reports when it is closed
	foreign bool          // in another network namespace
	gone    time.Duration // Stamp.Mono at which it was closed, if its Opener has not reported it yet; else 0
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

	// reportedWithin is the longest time until an Opener reports that a connection is closed.
	reportedWithin = 2 * time.Second
)

func newConnections() *connections {
	return &connections{
		source: tcp.New(), mount: tcp.MountID(), space: tcp.Namespace(),
		inodes: map[uint32]bool{}, wanted: map[uint32]wanted{},
	}
}

// WatchConnections makes the source learn of connections that open and close between two readings. Call it before the
// first reading.
func (s *Source) WatchConnections(o Opener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connections != nil {
		s.connections.opener = o
	}
}

// hear takes note of the connections that were opened and closed since the last reading.
func (c *connections) hear(jobs []*job) {
	if c == nil || c.opener == nil {
		return
	}
	all := c.opener.EachConnection(func(change *tcp.Change) {
		i := slices.IndexFunc(jobs, func(j *job) bool { return j.id == change.Job })
		if i >= 0 && c.learn(jobs[i], change) {
			c.changed = true
		}
	})
	if all {
		return
	}
	c.open = slices.DeleteFunc(c.open, func(one *connection) bool {
		if one.foreign { // its end may not be reported
			one.peer.Closed++
		}
		return one.foreign
	})
}

// learn reports whether a change is of a connection that counts.
func (c *connections) learn(j *job, change *tcp.Change) bool {
	if i := c.find(&change.Socket); i >= 0 {
		one := c.open[i]
		one.peer.add(&change.Socket, &one.Socket)
		change.Socket.Inode = one.Inode
		one.Socket, one.known = change.Socket, true
		if change.Closed {
			delete(c.inodes, one.Inode)
			c.open = slices.Delete(c.open, i, i+1)
		}
		return true
	}
	if !change.Closed && len(c.open) >= maxConnections {
		return false // it counts when it is closed
	}
	one := c.begin(j, &change.Socket, &tcp.Socket{}, false)
	if one == nil {
		return false
	}
	if !change.Closed {
		one.known, one.foreign = true, c.space == 0 || change.Space != c.space
		c.open = append(c.open, one)
	}
	return true
}

// find returns the place of an open connection in the list; -1 for one that is not known.
func (c *connections) find(s *tcp.Socket) int {
	return slices.IndexFunc(c.open, func(one *connection) bool { return one.Cookie == s.Cookie })
}

// begin counts a connection of a job that was not known, with what it moved since an earlier reading. It returns nil if
// there is no room for its peer.
func (c *connections) begin(j *job, s, was *tcp.Socket, accepted bool) *connection {
	p := c.peerOf(j, s, accepted)
	if p == nil {
		return nil
	}
	p.Opened++
	p.add(s, was)
	return &connection{Socket: *s, job: j, peer: p}
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
	c.open = slices.DeleteFunc(c.open, func(one *connection) bool {
		if one.job == j {
			delete(c.inodes, one.Inode) // the program may be followed again
		}
		return one.job == j
	})
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
		if out.Edge && c.changed {
			c.emit(out)
		}
		return nil
	}
	began := sample.Now().Mono
	c.readAt = now
	c.open = slices.DeleteFunc(c.open, func(one *connection) bool { return !c.refresh(one, now) })
	c.edgesAt = now + edgePause*(sample.Now().Mono-began)
	var err error
	if lists && len(c.wanted) > 0 {
		began := sample.Now().Mono
		err = c.list(now)
		c.listAt = now + listPause*(sample.Now().Mono-began)
	}
	c.emit(out)
	return err
}

// refresh reads a connection, and reports whether it is open, or closed and its Opener will report that.
func (c *connections) refresh(one *connection, now time.Duration) bool {
	if one.foreign || one.gone > 0 && now-one.gone < reportedWithin {
		return true
	}
	was := one.Socket
	open, err := c.source.Refresh(&one.Socket)
	if err != nil {
		return true // try again
	}
	if open {
		one.peer.add(&one.Socket, &was)
		if one.Inode != was.Inode { // reported, and read for the first time
			c.inodes[one.Inode] = true
			delete(c.wanted, one.Inode)
		}
		return true
	}
	if one.known && one.gone == 0 {
		one.gone = now
		return true
	}
	delete(c.inodes, was.Inode)
	one.peer.Closed++
	return false
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
		if c.find(s) >= 0 {
			continue // by an Opener
		}
		var before tcp.Socket
		if w.old {
			before = *s
		}
		if one := c.begin(w.job, s, &before, ports[s.Local.Port()]); one != nil {
			c.open = append(c.open, one)
		}
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
	c.changed = false
	for _, p := range c.peers {
		p.Connections = 0
	}
	for _, one := range c.open {
		if one.gone == 0 {
			one.peer.Connections++
		}
	}
	for _, p := range c.peers {
		out.Peers = append(out.Peers, p.Peer)
	}
	slices.SortFunc(out.Peers, func(a, b sample.Peer) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Address, b.Address))
	})
}
