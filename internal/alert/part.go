package alert

import "github.com/stallspan/stallspan/internal/sample"

// Part is a part of this program that can fail while the rest works: a source, the export.
type Part struct {
	Name  string // "source gpu", "export"
	Error string // one line; "" while the part works
}

// Parts detects failing parts of a program. The zero value is ready. It is not safe for concurrent use.
type Parts struct {
	group  *group[string]
	errors map[string]string
}

// Evaluate returns which parts began to fail and which work again. Call it at least every ten seconds.
func (p *Parts) Evaluate(now sample.Stamp, parts []Part) (events []Event) {
	if p.group == nil {
		p.group, p.errors = newGroup[string](AgentDegraded), map[string]string{}
	}
	for _, part := range parts {
		value := 0.0
		if part.Error != "" {
			value = 1
			if len(p.errors) < maxDevices {
				p.errors[part.Name] = part.Error
			}
		}
		if t, changed := p.group.evaluate(part.Name, now.Mono, value); changed {
			events = append(events, p.event(now, t))
		}
	}
	for _, t := range p.group.endRound(now.Mono) {
		events = append(events, p.event(now, t))
	}
	for name := range p.errors {
		if !p.group.has(name) {
			delete(p.errors, name)
		}
	}
	return events
}

func (p *Parts) event(now sample.Stamp, t transition[string]) Event {
	e := Event{
		Kind: AgentDegraded, Part: t.key, Reason: p.errors[t.key],
		Message: "stallspan reads or sends less than it should, " + t.key + ": " + p.errors[t.key],
	}
	if t.resolved {
		e.Reason, e.Message = "", t.key+" works again"
	}
	return withTimes(now, t, e)
}
