package main

import "testing"

func TestGoName(t *testing.T) {
	for name, want := range map[string]string{
		"stallspan.gpu.busy.time":       "GPUBusyTime",
		"stallspan.gpu.ids":             "GPUIDs",
		"stallspan.process.on_cpu.time": "ProcessOnCPUTime",
		"system.disk.io_time":           "SystemDiskIOTime",
		"hw.gpu.task":                   "HwGPUTask",
		"process.pid":                   "ProcessPID",
		"service.instance.id":           "ServiceInstanceID",
		"iowait":                        "IOWait",
		"storage_stall":                 "StorageStall",
		"":                              "",
		"..":                            "",
	} {
		if got := goName(name); got != want {
			t.Errorf("goName(%q) = %q, want %q", name, got, want)
		}
	}
}
