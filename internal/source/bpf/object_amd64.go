package bpf

import _ "embed"

// object holds the compiled programs: see hack/bpf.sh.
//
//go:embed bpf_amd64.o
var object []byte
