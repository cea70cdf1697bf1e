package trust

import (
	"errors"
	"strings"
	"sync"
)

var (
	// ErrFull means that all places are taken.
	ErrFull = errors.New("all places are taken")
	// ErrShare means that a client has taken its share.
	ErrShare = errors.New("this client has taken its share of the places")
)

// Share is the part of the places that one client may take.
const Share = 4

// Sharer returns who has a share for a client: see window.Window. Root in a container may be each of its users, so that
// they have one share together.
func Sharer(client string) string {
	if _, container, ok := strings.Cut(client, " in container "); ok {
		return "container " + container
	}
	return client
}

// Places are a number of places that clients take and release. It is safe for concurrent use.
type Places struct {
	max int

	mu    sync.Mutex
	taken int
	by    map[string]int // by Sharer; without those that have none
}

// NewPlaces returns so many free places.
func NewPlaces(places int) *Places { return &Places{max: places, by: map[string]int{}} }

// Each is how many places one client may take.
func (p *Places) Each() int { return max(1, p.max/Share) }

// Take takes a place for a client: see window.Window. The client "" is this program itself, which has no share. The
// error is ErrFull or ErrShare.
func (p *Places) Take(client string) error {
	client = Sharer(client)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken >= p.max:
		return ErrFull
	case client != "" && p.by[client] >= p.Each():
		return ErrShare
	}
	p.taken++
	p.by[client]++
	return nil
}

// Release ends what Take began.
func (p *Places) Release(client string) {
	client = Sharer(client)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[client]--; p.by[client] == 0 {
		delete(p.by, client)
	}
}

// Taken returns how many places are taken.
func (p *Places) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
