package progress

// maxLoads bounds the loads that are open at a time. A begin beyond it is not taken.
const maxLoads = 64

// loads follows models that are being loaded. All open ones belong to one framework: what another prints meanwhile is
// part of the same load (vLLM's checkpoint bars, the llama.cpp inside Ollama).
type loads struct {
	emit      func(Event)
	framework string
	open      []string // names in the order of their begin; at most one has none
}

func (l *loads) begin(framework, model string) {
	if len(l.open) > 0 && (l.framework != framework || model == "" || l.find(model) >= 0) {
		return // a part of an open load, or another worker that loads the same
	}
	if len(l.open) == maxLoads {
		return
	}
	l.framework = framework
	l.open = append(l.open, model)
	l.emit(Event{Kind: LoadBegin, Model: model})
}

// end ends the load of that name, or one that began without a name; without a name, the latest.
func (l *loads) end(framework, model string) {
	if len(l.open) == 0 || l.framework != framework {
		return
	}
	i := len(l.open) - 1
	if model != "" {
		if i = l.find(model); i < 0 {
			i = l.find("")
		}
	}
	if i < 0 {
		return
	}
	if l.open[i] != "" {
		model = l.open[i]
	}
	l.open = append(l.open[:i], l.open[i+1:]...)
	l.emit(Event{Kind: LoadEnd, Model: model})
}

func (l *loads) close() {
	for _, model := range l.open {
		l.emit(Event{Kind: LoadEnd, Model: model, Void: true})
	}
	l.open = l.open[:0]
}

func (l *loads) find(model string) int {
	for i, open := range l.open {
		if open == model {
			return i
		}
	}
	return -1
}
