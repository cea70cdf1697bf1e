package process

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// sockets is implemented by tcp.Source.
type sockets interface {
	List(visit func(*tcp.Socket)) error
	Refresh(socket *tcp.Socket) (open bool, err error)
	Close()
}

// connections are the TCP connections of jobs. Which sockets are a job's is known from a Scheduler, and from the open
// files of its processes: these may be older than the job, or accepted. Those in another network namespace are only
// known from a Scheduler, with what they moved until they were closed.
type connections struct {
	source  sockets
	mount   int    // of all sockets; 0 if it is not known
	space   uint32 // network namespace of this program; 0 if it is not known
	open    []*connection
	inodes  map[uint32]looked // of open, and of sockets that were not found
	wanted  map[uint32]wanted // sockets of jobs that are not known yet
	peers   []*peer           // of all jobs
	now     time.Duration     // of the reading
	forgot  time.Duration     // when inodes was made
	readAt  time.Duration
	listAt  time.Duration // no list is made before
	edgesAt time.Duration // no reading for an edge before
	changed bool          // by a Scheduler, since the last reading
}

// wanted is a socket of a job.
type wanted struct {
	job *job
	old bool
}

// looked is a socket that need not be looked for now.
type looked struct {
	again time.Duration // when it may; 0 for an open connection
	tries uint8         // how often it was not found: it may be no connection, or not connected yet
	old   bool          // of wanted, of a connection that found no room
}

// connection is an open connection of a job.
type connection struct {
	tcp.Socket
	job     *job
	peer    *peer
	known   bool          // by a Scheduler, which also reports when it is closed
	foreign bool          // in another network namespace
	gone    time.Duration // Stamp.Mono at which it was closed, if its Scheduler has not reported it yet; else 0
}

// peer is a peer of a job, with its connections' shortest round trips.
type peer struct {
	sample.Peer
	job *job
	at  time.Duration // when it last moved something
}

// otherPeers is the address of peers that found no room, neither of their own nor by port.
const otherPeers = "*:*"

const (
	maxConnections = 1024 // of all jobs
	maxInodes      = 16384
	maxPeers       = 96 // of all jobs, without the first of each job and otherPeers
	maxJobPeers    = 16 // with otherPeers

	// A peer without connections that has moved nothing for so long makes room for others. Longer windows lack it.
	idlePeer = 10 * time.Minute

	// A list of all sockets takes milliseconds, and a connection microseconds. So they take 0.5 % of a core at most; with
	// edges, 2 %.
	listPause = 200
	edgePause = 50

	// reportedWithin is the longest time until a Scheduler reports that a connection is closed.
	reportedWithin = 2 * time.Second

	// maxTries is how often a socket is looked for, after 1, 2 and 4 s, before everything is forgotten.
	maxTries = 4
)

func newConnections() *connections {
	return &connections{
		source: tcp.New(), mount: tcp.MountID(), space: tcp.Namespace(),
		inodes: map[uint32]looked{}, wanted: map[uint32]wanted{},
	}
}

// hear takes note of the connections that were opened and closed since the last reading.
func (c *connections) hear(scheduler Scheduler, jobs []*job, now time.Duration) {
	if c == nil {
		return
	}
	c.now = now
	if scheduler == nil {
		return
	}
	all := scheduler.EachConnection(func(change *tcp.Change) {
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
		if !change.Closed && one.known && !one.foreign {
			return false // it is read, and what was read may be newer
		}
		one.peer.add(&change.Socket, &one.Socket, c.now)
		change.Socket.Inode = one.Inode
		one.Socket, one.known = change.Socket, true
		if change.Closed {
			delete(c.inodes, one.Inode)
			c.open = slices.Delete(c.open, i, i+1)
		}
		return true
	}
	if !change.Closed && !c.hasRoom(j) {
		return false // it counts when it is closed
	}
	one := c.begin(j, &change.Socket, &tcp.Socket{}, false)
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

// hasRoom reports whether a job may have another connection read: its client may have as many as are free.
func (c *connections) hasRoom(j *job) bool {
	free := maxConnections - len(c.open)
	if free > maxConnections/2 {
		return true
	}
	held := 0
	for _, one := range c.open {
		if one.job.payer() == j.payer() {
			held++
		}
	}
	return held < free
}

// begin counts a connection of a job that was not known, with what it moved since an earlier reading.
func (c *connections) begin(j *job, s, was *tcp.Socket, accepted bool) *connection {
	p := c.peerOf(j, s, accepted)
	p.Opened++
	p.add(s, was, c.now)
	return &connection{Socket: *s, job: j, peer: p}
}

// isSocket reports whether an open file is a socket.
func (c *connections) isSocket(f OpenFile) bool {
	return c != nil && c.mount != 0 && f.Mount == c.mount && f.Inode != 0
}

// want notes a socket of a job. An old one may have been there before the job was followed.
func (c *connections) want(j *job, inode uint32, old bool) {
	k, found := c.inodes[inode]
	if found && (k.again == 0 || c.now < k.again) || len(c.wanted) >= maxInodes {
		return
	}
	if _, noted := c.wanted[inode]; !noted {
		c.wanted[inode] = wanted{j, k.old || old && !found}
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
		if c.listAt = now + listPause*(sample.Now().Mono-began); err != nil {
			c.listAt = max(c.listAt, now+scanInterval)
		}
	}
	c.emit(out)
	return err
}

// refresh reads a connection, and reports whether it is open, or closed and its Scheduler will report that.
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
		one.peer.add(&one.Socket, &was, c.now)
		if one.Inode != was.Inode { // reported, and read for the first time
			c.inodes[one.Inode] = looked{}
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

// list finds the wanted sockets. If the kernel does not list all of them, the others stay wanted.
func (c *connections) list(now time.Duration) error {
	if now-c.forgot >= forgetEvery || len(c.inodes) >= maxInodes {
		c.forget(now)
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
		delete(c.wanted, s.Inode)
		switch {
		case s.Connecting:
			c.inodes[s.Inode] = looked{again: now + scanInterval}
		case c.find(s) >= 0: // by a Scheduler
			c.inodes[s.Inode] = looked{}
		case !c.hasRoom(w.job):
			c.inodes[s.Inode] = looked{again: now + forgetEvery/2, old: w.old}
		default:
			var before tcp.Socket
			if w.old {
				before = *s
			}
			c.open = append(c.open, c.begin(w.job, s, &before, ports[s.Local.Port()]))
			c.inodes[s.Inode] = looked{}
		}
	}
	if err != nil {
		return err
	}
	for inode := range c.wanted {
		k := c.inodes[inode]
		if k.tries++; k.tries >= maxTries {
			k.again = now + forgetEvery
		} else {
			k.again = now + scanInterval<<(k.tries-1)
		}
		c.inodes[inode] = k
	}
	clear(c.wanted)
	return nil
}

// forget forgets the sockets that were not found: they may be connections now, and inodes are used again.
func (c *connections) forget(now time.Duration) {
	for inode, k := range c.inodes {
		if k.again > 0 && !k.old {
			delete(c.inodes, inode)
		}
	}
	if len(c.inodes) >= maxInodes {
		clear(c.inodes)
		for _, one := range c.open {
			c.inodes[one.Inode] = looked{}
		}
	}
	c.forgot = now
}

// payer is whose share of the room a job takes.
func (j *job) payer() string { return cmp.Or(j.client, j.id) }

// peerOf returns the peer of a connection. One that finds no room counts with all others on its port, or else with all
// others.
func (c *connections) peerOf(j *job, s *tcp.Socket, accepted bool) *peer {
	address, port := s.Remote.String(), "*:"+strconv.Itoa(int(s.Remote.Port()))
	if accepted {
		address, port = s.Local.String(), "*:"+strconv.Itoa(int(s.Local.Port()))
	}
	for _, name := range []string{address, port} {
		if p := c.peerNamed(j, name, accepted); p != nil {
			return p
		}
		if c.makeRoom(j, name == port) {
			return c.newPeer(j, name, accepted)
		}
	}
	if p := c.peerNamed(j, otherPeers, accepted); p != nil {
		return p
	}
	return c.newPeer(j, otherPeers, accepted)
}

// peerNamed returns a peer of a job; nil for one that is not known.
func (c *connections) peerNamed(j *job, name string, accepted bool) *peer {
	for _, p := range c.peers {
		if p.job == j && p.Accepted == accepted && p.Address == name {
			return p
		}
	}
	return nil
}

func (c *connections) newPeer(j *job, name string, accepted bool) *peer {
	p := &peer{Peer: sample.Peer{Job: j.id, Address: name, Accepted: accepted}, job: j}
	c.peers = append(c.peers, p)
	return p
}

// makeRoom reports whether a job may have another peer. Each may have a first one. Of the others, a client may have as
// many as are free. A group by port may take the last place that a job has. An idle peer makes room.
func (c *connections) makeRoom(j *job, group bool) bool {
	most := maxJobPeers - 2
	if group {
		most++
	}
	for {
		of, held, all := 0, 0, 0
		for _, p := range c.peers {
			if p.Address == otherPeers {
				continue
			}
			all++
			if p.job.payer() == j.payer() {
				held++
			}
			if p.job == j {
				of++
			}
		}
		if of == 0 || of < most && held < maxPeers-all {
			return true
		}
		from := j
		if of < most {
			from = nil // the room of all jobs is full
		}
		if !c.evict(from) {
			return false
		}
	}
}

// evict removes the peer that is idle for longest: of a job, or nil for any. What it moved is kept for the sum of the
// job.
func (c *connections) evict(j *job) bool {
	used := map[*peer]bool{}
	for _, one := range c.open {
		used[one.peer] = true
	}
	at := -1
	for i, p := range c.peers {
		if p.Address != otherPeers && (j == nil || p.job == j) && !used[p] && c.now-p.at >= idlePeer &&
			(at < 0 || p.at < c.peers[at].at) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	gone := c.peers[at]
	c.peers = slices.Delete(c.peers, at, at+1)
	others := c.peerNamed(gone.job, otherPeers, gone.Accepted)
	if others == nil {
		others = c.newPeer(gone.job, otherPeers, gone.Accepted)
	}
	others.PastReceived += gone.Received
	others.PastSent += gone.Sent
	return true
}

// add adds what a connection moved since an earlier reading.
func (p *peer) add(s, was *tcp.Socket, now time.Duration) {
	if p.at == 0 || s.Received > was.Received || s.Sent > was.Sent {
		p.at = now
	}
	if heard := now - s.Silent; (s.Received > was.Received || s.Silent > 0) && (p.Heard == 0 || heard > p.Heard) {
		p.Heard = heard
	}
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
		p.Connections, p.Came = 0, 0
	}
	for _, one := range c.open {
		if p := one.peer; one.gone == 0 {
			p.Connections++
			p.Came += one.Received
		}
	}
	for _, p := range c.peers {
		out.Peers = append(out.Peers, p.Peer)
	}
	slices.SortFunc(out.Peers, func(a, b sample.Peer) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Address, b.Address))
	})
}
