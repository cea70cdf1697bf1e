package events

import (
	"github.com/stallspan/stallspan/internal/condition"
	"github.com/stallspan/stallspan/internal/sample"
)

// Part is something of this program that may fail while the rest goes on: a source, the export.
type Part struct {
	Name string // "source gpu", "export"
	Why  string // one line; "" while it works
}

// Parts watches the parts of a program. The zero value is ready. It is not safe for concurrent use.
type Parts struct {
	group *condition.Group[string]
	why   map[string]string
}

// Look gives which parts began to fail, and which work again. It is to be called at least every ten seconds.
func (p *Parts) Look(now sample.Stamp, parts []Part) (told []Event) {
	if p.group == nil {
		p.group, p.why = group[string](AgentDegraded), map[string]string{}
	}
	for _, part := range parts {
		value := 0.0
		if part.Why != "" {
			value = 1
			if len(p.why) < most {
				p.why[part.Name] = part.Why
			}
		}
		if t, changed := p.group.Look(part.Name, now.Mono, value); changed {
			told = append(told, p.event(now, t))
		}
	}
	for _, t := range p.group.Rest(now.Mono) {
		told = append(told, p.event(now, t))
	}
	for name := range p.why {
		if !p.group.Has(name) {
			delete(p.why, name)
		}
	}
	return told
}

func (p *Parts) event(now sample.Stamp, t condition.Told[string]) Event {
	e := Event{Kind: AgentDegraded, Part: t.Key, Reason: p.why[t.Key], Says: "stallspan sees or sends less than it should, " + t.Key + ": " + p.why[t.Key]}
	if resolved(t) {
		e.Reason, e.Says = "", t.Key+" works again"
	}
	return timed(now, t, e)
}
