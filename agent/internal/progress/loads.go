package progress

// maxLoads bounds the loads that are open at a time. Further begins are ignored.
const maxLoads = 64

// loads follows model loads. All open loads belong to one framework: lines of another one are part of the same load
// (vLLM's checkpoint bars, the llama.cpp inside Ollama).
type loads struct {
	emit      func(Event)
	framework string
	open      []string // names in the order of their begin; at most one is empty
}

func (l *loads) begin(framework, model string) {
	if len(l.open) > 0 && (l.framework != framework || model == "" || l.find(model) >= 0) {
		return // a part of an open load, or another worker with the same model
	}
	if len(l.open) == maxLoads {
		return
	}
	l.framework = framework
	l.open = append(l.open, model)
	l.emit(Event{Kind: LoadBegin, Model: model})
}

// end ends the load of this name, or else one that began without a name. Without a name it ends the latest.
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
