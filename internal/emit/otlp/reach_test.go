package otlp

// Known is how many sets are remembered.
func (w *Writer) Known() int { return len(w.known) }
