package netmount

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Class is what a request is for.
type Class string

// The classes are those of the product.
const (
	Read  Class = "read"
	Write Class = "write"
	Other Class = "other"
)

// Call is a request of NFS, as the proxy saw it.
type Call struct {
	Class    Class
	Size     int       // bytes that the reply to a READ has
	Arrived  time.Time // all of it
	Answered time.Time // zero: not yet, or the reply was lost
	Again    bool      // the client had sent it before

	version uint32 // of NFS
}

// Faults of replies to READ.
type fault int

const (
	lost   fault = iota // the reply
	breaks              // the connection, in place of the reply
)

// proxy passes the requests of a client to a server, over TCP. It answers late, and logs.
type proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	delays map[Class]time.Duration
	faults []fault
	calls  []*Call
	seen   map[uint32]bool // identifiers of requests
	open   map[net.Conn]bool
}

// startProxy passes what comes to a free port of this machine to a server.
func startProxy(server string) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: listener, server: server, delays: map[Class]time.Duration{}, seen: map[uint32]bool{},
		open: map[net.Conn]bool{}}
	p.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(client) })
		}
	})
	return p, nil
}

func (p *proxy) close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for conn := range p.open {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
	return err
}

func (p *proxy) keep(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[conn] = true
}

func (p *proxy) end(conn net.Conn) {
	_ = conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

// link is a connection of a client.
type link struct {
	client, server net.Conn

	mu      sync.Mutex // of writes to the client, and waiting
	waiting map[uint32]*Call
}

func (p *proxy) serve(client net.Conn) {
	defer p.end(client)
	p.keep(client)
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer p.end(server)
	p.keep(server)
	l := &link{client: client, server: server, waiting: map[uint32]*Call{}}
	var late sync.WaitGroup
	defer late.Wait()
	late.Go(func() {
		p.answer(l, &late)
		_ = client.Close()
	})
	for {
		record, err := readRecord(client)
		if err != nil {
			break
		}
		if call, id := parseCall(record); call != nil {
			call.Arrived = time.Now()
			p.mu.Lock()
			call.Again, p.seen[id] = p.seen[id], true
			p.calls = append(p.calls, call)
			p.mu.Unlock()
			l.mu.Lock()
			l.waiting[id] = call
			l.mu.Unlock()
		}
		if writeRecord(server, record) != nil {
			break
		}
	}
	_ = server.Close()
}

// answer passes replies to the client, each so late as its request is to be answered.
func (p *proxy) answer(l *link, late *sync.WaitGroup) {
	for {
		record, err := readRecord(l.server)
		if err != nil || len(record) < 8 {
			return
		}
		id := binary.BigEndian.Uint32(record)
		l.mu.Lock()
		call := l.waiting[id]
		delete(l.waiting, id)
		l.mu.Unlock()
		if call == nil || binary.BigEndian.Uint32(record[4:]) == 0 { // not of NFS, or a request of the server
			l.mu.Lock()
			err := writeRecord(l.client, record)
			l.mu.Unlock()
			if err != nil {
				return
			}
			continue
		}
		p.mu.Lock()
		wait := time.Until(call.Arrived.Add(p.delays[call.Class]))
		var fails *fault
		if call.Class == Read && len(p.faults) > 0 {
			fails, p.faults = &p.faults[0], p.faults[1:]
		}
		p.mu.Unlock()
		if fails != nil && *fails == breaks {
			return
		}
		if fails != nil {
			continue
		}
		late.Go(func() {
			time.Sleep(wait)
			l.mu.Lock()
			err := writeRecord(l.client, record)
			l.mu.Unlock()
			p.mu.Lock()
			defer p.mu.Unlock()
			if err == nil {
				call.Answered = time.Now()
				if call.Class == Read {
					call.Size = dataOf(record, call.version)
				}
			}
		})
	}
}

// lastFragment marks the last fragment of a record (RFC 5531, 11).
const lastFragment = 1 << 31

func readRecord(from io.Reader) (record []byte, err error) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return nil, err
		}
		mark := binary.BigEndian.Uint32(head[:])
		length := int(mark &^ lastFragment)
		if len(record)+length > 4<<20 {
			return nil, errors.New("a record is too long")
		}
		record = append(record, make([]byte, length)...)
		if _, err := io.ReadFull(from, record[len(record)-length:]); err != nil {
			return nil, err
		}
		if mark&lastFragment != 0 {
			return record, nil
		}
	}
}

func writeRecord(to io.Writer, record []byte) error {
	all := append(binary.BigEndian.AppendUint32(nil, uint32(len(record))|lastFragment), record...)
	_, err := to.Write(all)
	return err
}

// words reads XDR. After its end all is zero.
type words []byte

func (w *words) uint32() uint32 {
	if len(*w) < 4 {
		*w = nil
		return 0
	}
	n := binary.BigEndian.Uint32(*w)
	*w = (*w)[4:]
	return n
}

func (w *words) skip(bytes int) { *w = (*w)[min((bytes+3)&^3, len(*w)):] }

// opaque skips bytes that their length precedes.
func (w *words) opaque() { w.skip(int(w.uint32())) }

// Numbers of RFC 1813, 7530, 5661 and 7862.
const (
	programNFS = 100003
	read3      = 6
	write3     = 7
	compound   = 1
	putFH      = 22
	read4      = 25
	write4     = 38
	sequence   = 53
	readPlus   = 68
)

// parseCall returns a call of NFS with its identifier; nil for any other record.
func parseCall(record []byte) (call *Call, id uint32) {
	w := words(record)
	id = w.uint32()
	if w.uint32() != 0 || w.uint32() != 2 || w.uint32() != programNFS {
		return nil, 0
	}
	version, procedure := w.uint32(), w.uint32()
	for range 2 { // credential and verifier
		w.uint32()
		w.opaque()
	}
	class := Other
	switch {
	case version == 3 && procedure == read3:
		class = Read
	case version == 3 && procedure == write3:
		class = Write
	case version == 4 && procedure == compound:
		w.opaque() // tag
		w.skip(8)  // minor version, operations
		operation := w.uint32()
		if operation == sequence {
			w.skip(16 + 4*4)
			operation = w.uint32()
		}
		if operation == putFH {
			w.opaque()
			operation = w.uint32()
		}
		switch operation {
		case read4, readPlus:
			class = Read
		case write4:
			class = Write
		}
	}
	return &Call{Class: class, version: version}, id
}

// dataOf returns how many bytes a reply to READ has. Holes of READ_PLUS count as none.
func dataOf(record []byte, version uint32) int {
	w := words(record)
	w.skip(3 * 4) // identifier, reply, accepted
	w.uint32()
	w.opaque() // verifier
	w.uint32() // accepted
	if w.uint32() != 0 {
		return 0
	}
	if version == 3 {
		if w.uint32() == 1 {
			w.skip(84) // attributes
		}
		return int(w.uint32())
	}
	w.opaque() // tag
	w.uint32() // operations
	for {
		operation, status := w.uint32(), w.uint32()
		switch {
		case status != 0:
			return 0
		case operation == sequence:
			w.skip(16 + 5*4)
		case operation == putFH:
		case operation == read4:
			w.uint32() // end of file
			return int(w.uint32())
		case operation == readPlus:
			w.uint32() // end of file
			total := 0
			for range w.uint32() {
				switch w.uint32() {
				case 0: // data
					w.skip(8)
					n := int(w.uint32())
					total += n
					w.skip(n)
				default: // a hole
					w.skip(16)
				}
			}
			return total
		default:
			return 0
		}
	}
}
