//go:build linux && (amd64 || arm64)

package processor

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/window"
)

// maxNested bounds the spans that nested remembers, in each of its two generations.
const maxNested = 1 << 12

// nested knows which spans have a child of their own kind that shows what was slow, as a load has its io_read, so that
// its parent does not show it again. SDKs send what ended first, so children come before their parents. It is safe
// for concurrent use.
type nested struct {
	mu           sync.Mutex
	young, older map[place]shown
}

// place is a span and a kind of windows.
type place struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
	kind  window.Kind
}

// shown is what the children of a span show that have its kind.
type shown struct {
	events   bool
	from, to time.Time // from the first to the last of those with stalls
}

// once takes out of s what a child of the same kind has shown, and remembers for the parent what is shown up to here.
func (n *nested) once(k window.Kind, span ptrace.Span, s *emit.Span) {
	n.mu.Lock()
	defer n.mu.Unlock()
	here := place{span.TraceID(), span.SpanID(), k}
	inner := n.at(here)
	now := inner
	now.add(shown{events: len(s.Events) > 0})
	if len(s.Children) > 0 {
		now.add(shown{from: s.Start, to: s.End})
	}
	if inner.events {
		s.Events = nil
	}
	s.Children = slices.DeleteFunc(s.Children, func(c emit.Span) bool {
		middle := c.Start.Add(c.End.Sub(c.Start) / 2) // a parent begins a little before its child
		return middle.After(inner.from) && middle.Before(inner.to)
	})
	if here.span = span.ParentSpanID(); here.span.IsEmpty() || now == (shown{}) {
		return
	}
	now.add(n.at(here))
	if len(n.young) >= maxNested {
		n.older, n.young = n.young, nil
	}
	if n.young == nil {
		n.young = map[place]shown{}
	}
	n.young[here] = now
}

func (n *nested) at(p place) shown {
	if s, ok := n.young[p]; ok {
		return s
	}
	return n.older[p]
}

func (s *shown) add(other shown) {
	s.events = s.events || other.events
	if s.to.IsZero() || !other.to.IsZero() && other.from.Before(s.from) {
		s.from = other.from
	}
	if other.to.After(s.to) {
		s.to = other.to
	}
}
