package latency

import _ "embed"

// object holds the compiled programs: see hack/bpf.sh.
//
//go:embed latency_arm64.o
var object []byte
