module github.com/stallspan/stallspan/test/scenarios

go 1.26.0

require (
	github.com/stallspan/stallspan v0.0.0
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/NVIDIA/go-nvml v0.13.4-0 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/hanwen/go-fuse/v2 v2.12.1 // indirect
)

replace github.com/stallspan/stallspan => ../..
