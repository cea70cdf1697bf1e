package lend

import (
	"encoding/binary"
	"time"

	"github.com/stallspan/stallspan/internal/source/tcp"
)

// Bounds of the changes of connections.
const (
	maxChanges        = 1024 // of a frame: about 150 KiB
	maxPendingChanges = 4096 // that were not read yet
)

// connector is a Source that knows which connections were opened and closed.
type connector interface {
	EachConnection(visit func(*tcp.Change)) (all bool)
}

// changes returns what a frame ends with: whether the changes are all, their number, and the changes. It is empty for a
// source that knows of none. The kernel has compared the ids of the user's process when it connected.
func (n *Loan) changes() []byte {
	source, ok := n.source.(connector)
	if !ok {
		return nil
	}
	n.list = n.list[:0]
	left := false
	all := source.EachConnection(func(c *tcp.Change) {
		if len(n.list) == maxChanges {
			left = true
			return
		}
		n.list = append(n.list, *c)
	})
	n.tail = appendChanges(n.tail[:0], n.list, all && !left)
	return n.tail
}

func appendChanges(b []byte, list []tcp.Change, all bool) []byte {
	b = append(b, byte(number(all)))
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		c := &list[i]
		s, id := &c.Socket, c.Socket.ID()
		b = append(b, byte(number(c.Closed)), id.Family)
		b = append(append(b, id.Local[:]...), id.Remote[:]...)
		for _, v := range [...]uint64{
			uint64(id.LocalPort), uint64(id.RemotePort), uint64(id.Device), id.Cookie, uint64(c.Space), s.Received, s.Sent,
			uint64(s.Messages), uint64(s.Packets), uint64(s.OutOfOrder), uint64(s.MinRTT), uint64(s.ReceiveSpace),
		} {
			b = binary.AppendUvarint(b, v)
		}
		b = appendText(b, c.Job)
	}
	return b
}

// decodeChanges reads what appendChanges wrote. known is false for a source that knows of none.
func decodeChanges(tail []byte) (list []tcp.Change, all, known bool, err error) {
	if len(tail) == 0 {
		return nil, false, false, nil
	}
	d := decoder{rest: tail}
	all = d.byte() == 1
	n := d.unsigned()
	if d.bad || n > maxChanges {
		return nil, false, false, errFrame
	}
	for range n {
		list = append(list, d.change())
		if d.bad {
			return nil, false, false, errFrame
		}
	}
	if len(d.rest) > 0 {
		return nil, false, false, errFrame
	}
	return list, all, true, nil
}

func (d *decoder) change() tcp.Change {
	closed := d.byte() == 1
	id := tcp.ID{Family: d.byte()}
	d.bytes(id.Local[:])
	d.bytes(id.Remote[:])
	id.LocalPort, id.RemotePort, id.Device = uint16(d.unsigned()), uint16(d.unsigned()), uint32(d.unsigned())
	id.Cookie = d.unsigned()
	space := uint32(d.unsigned())
	s := id.Socket()
	s.Received, s.Sent = d.unsigned(), d.unsigned()
	s.Messages, s.Packets, s.OutOfOrder = uint32(d.unsigned()), uint32(d.unsigned()), uint32(d.unsigned())
	s.MinRTT, s.ReceiveSpace = time.Duration(d.unsigned()), uint32(d.unsigned())
	return tcp.Change{Job: d.text(), Socket: s, Closed: closed, Space: space}
}

func (d *decoder) byte() byte {
	var b [1]byte
	d.bytes(b[:])
	return b[0]
}

func (d *decoder) bytes(into []byte) {
	if len(d.rest) < len(into) {
		d.bad, d.rest = true, nil
		return
	}
	d.rest = d.rest[copy(into, d.rest):]
}

// connected adds the changes of a frame.
func (b *Borrower) connected(list []tcp.Change, all, known bool) {
	room := min(len(list), maxPendingChanges-len(b.opened))
	b.opened = append(b.opened, list[:room]...)
	b.unseen = b.unseen || !all || !known || room < len(list)
}

// EachConnection calls visit for each change of a connection that the server has reported since the last call. The
// newest may be 100 ms old. It reports whether these are all.
func (b *Borrower) EachConnection(visit func(*tcp.Change)) (all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.opened {
		visit(&b.opened[i])
	}
	all = !b.unseen && b.link.works()
	b.opened, b.unseen = b.opened[:0], !b.link.works()
	return all
}
