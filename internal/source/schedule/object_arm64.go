package schedule

import _ "embed"

// object holds the compiled programs: see hack/bpf.sh.
//
//go:embed sched_arm64.o
var object []byte
