//go:build linux

package pipeline

// A request is one line of JSON from the bench to the program; each is answered with one reply.
type request struct {
	Plan  *Plan   `json:"plan,omitempty"`  // prepare; Go begins it
	Noise *Noise  `json:"noise,omitempty"` // begin at once; Stop ends it
	Rate  float64 `json:"rate,omitempty"`  // with a Plan
	Go    bool    `json:"go,omitempty"`
	Stop  bool    `json:"stop,omitempty"`
	Quit  bool    `json:"quit,omitempty"`
}

type reply struct {
	Ready bool        `json:"ready,omitempty"`
	Done  bool        `json:"done,omitempty"`
	Truth *Truth      `json:"truth,omitempty"`
	Noise *NoiseTruth `json:"noise,omitempty"`
	Error string      `json:"error,omitempty"`
}
