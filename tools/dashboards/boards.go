package main

func boards() []board {
	return []board{gpuHours(), gpuAgainstDisk(), slowWindows(), wholeGPU(), diskHealth()}
}

// highest is the maximum of what several senders report for one device.
func highest(by, expr, legend string) query { return query{`max ` + by + ` (` + expr + `)`, legend} }

const (
	gpuName  = "{{<host.name>}} {{<hw.id>}}"
	diskName = "{{<host.name>}} {{<system.device.name>}}"
	diskWay  = diskName + " {{<disk.io.direction>}}"
	interval = "[$__rate_interval]"
)

func gpuAgainstDisk() board {
	const hostName = "{{<host.name>}}"
	return board{
		file: "gpu-disk.json", uid: "gpu-disk", title: "Stallspan: GPU against disk",
		says:      "Idle GPUs and waiting for storage on one time axis with epochs and loads.",
		variables: []variable{hostVariable, gpuVariable, diskVariable}, marks: windowMarks(),
		rows: []row{
			{"On one axis", []panel{
				graph("Work and waiting", percent, highest(byGPU, `rate(<stallspan.gpu.busy.time>{`+onGPUs+`}`+interval+`)`,
					gpuName+" works"),
					highest(byHost, `rate(<system.linux.pressure.io.stall.time>{`+onHosts+`, <system.linux.pressure.stall_type=some>}`+interval+`)`, hostName+" waits for storage"),
					highest(byDisk, `rate(<system.disk.io_time>{`+onDisks+`}`+interval+`)`,
						diskName+" has I/O in flight")).wide(),
			}},
			{"GPU", []panel{
				graph("GPU busy", percent, highest(byGPU, `rate(<stallspan.gpu.busy.time>{`+onGPUs+`}`+interval+`)`,
					gpuName)).wide(),
				graph("Lost to storage", percent, query{gpuLost + `{` + onGPUs + `}`, gpuName}).wide().
					saying("Idle while its job waited for storage. From rules.yaml."),
			}},
			{"Storage", []panel{
				graph("Waiting for storage (pressure)", percent,
					highest(byHost, `rate(<system.linux.pressure.io.stall.time>{`+onHosts+`, <system.linux.pressure.stall_type=some>}`+interval+`)`, hostName)).wide(),
				graph("Throughput", perSecond, highest(byWay, `rate(<system.disk.io>{`+onDisks+`}`+interval+`)`, diskWay),
					highest(byWay, `<stallspan.disk.throughput.ceiling>{`+onDisks+`}`, diskWay+" ceiling")),
				graph("Operations", operation, highest(byWay, `rate(<system.disk.operations>{`+onDisks+`}`+interval+`)`, diskWay)),
				graph("Await", seconds, query{`max ` + byWay + ` (rate(<system.disk.operation_time>{` + onDisks + `}` + interval +
					`)) / (max ` + byWay +
					` (rate(<system.disk.operations>{` + onDisks + `}` + interval + `)) > 0)`, diskWay}),
				graph("Queue", plainUnit, highest(byDisk, `rate(<system.disk.weighted_io_time>{`+onDisks+`}`+interval+`)`,
					diskName)),
				graph("Time with I/O in flight (%util)", percent,
					highest(byDisk, `rate(<system.disk.io_time>{`+onDisks+`}`+interval+`)`, diskName)).
					saying("100 % does not mean saturated for a device that serves operations in parallel."),
				{title: "Saturated", kind: stateTimeline, unit: plainUnit, width: 12, height: 8,
					says:    "1 while a disk is saturated. From rules.yaml.",
					queries: []query{{diskSaturated + `{` + onDisks + `}`, diskName}}},
			}},
			{"CPU", []panel{
				graph("CPUs at work", percent, query{`1 - avg ` + byHost +
					` (max by (<host.name>, <cpu.logical_number>) (rate(<system.cpu.time>{` + onHosts + `, <cpu.mode=idle>}` +
					interval + `)))`, hostName}),
				graph("Waiting for a CPU (pressure)", percent,
					highest(byHost, `rate(<system.linux.pressure.cpu.stall.time>{`+onHosts+`, <system.linux.pressure.stall_type=some>}`+interval+`)`, hostName)),
			}},
			{"Windows", []panel{
				durations("Epochs", "<stallspan.training.epoch.duration_bucket>"),
				durations("Model loads", "<stallspan.model.load.duration_bucket>"),
			}},
		},
	}
}

// durations shows the durations of windows, with exemplars that lead to their spans.
func durations(title, histogram string) panel {
	p := graph(title+", nine of ten are shorter than", seconds, query{
		`histogram_quantile(0.9, sum by (le, <host.name>, <stallspan.verdict>, <stallspan.window.source>) (rate(` + histogram +
			`{` + onHosts + `}` + interval + `)))`,
		"{{<host.name>}} {{<stallspan.verdict>}}, {{<stallspan.window.source>}}",
	}).saying("Each exemplar leads to the span of a window, if Prometheus stores exemplars and the data source links to " +
		"Tempo.")
	p.exemplars = true
	return p
}

// found is a TraceQL table of windows. The fields of select() become columns.
func found(title, condition string) panel {
	return panel{
		title: title, kind: table, width: 24, height: 9, trace: true,
		queries: []query{{
			`{ ` + condition + ` && <resource.host.name> =~ "${host:pipe}" } | select(<resource.host.name>, ` +
				`<resource.stallspan.job.name>, <resource.process.owner>, <span.stallspan.verdict>, ` +
				`<span.stallspan.slowness.reason>, <span.stallspan.stall.storage.time>, <span.stallspan.speedup.estimate>, <span.stallspan.disk.read.await>, ` +
				`<span.stallspan.finding>, <span.stallspan.remedy>)`, "",
		}},
	}
}

func slowWindows() board {
	return board{
		file: "slow-windows.json", uid: "slow-windows", title: "Stallspan: slow loads and epochs",
		says:      "Slow model loads and epochs with their findings and remedies.",
		variables: []variable{hostVariable}, marks: windowMarks(),
		rows: []row{
			{"In Tempo", []panel{
				found("Slow loads", `<span.stallspan.slow> = true && <span.stallspan.window.kind> = "model_load"`),
				found("Slow epochs", `<span.stallspan.slow> = true && <span.stallspan.window.kind> = "epoch"`),
				found("Whatever storage held up", `<span.stallspan.verdict> = "storage_bound"`),
			}},
			{"Announced windows, in Prometheus", []panel{
				durations("Epochs", "<stallspan.training.epoch.duration_bucket>"),
				durations("Model loads", "<stallspan.model.load.duration_bucket>"),
				ended("Epochs by verdict, in 10 min", "<stallspan.training.epoch.duration_count>"),
				ended("Model loads by verdict, in 10 min", "<stallspan.model.load.duration_count>"),
			}},
		},
	}
}

func ended(title, histogram string) panel {
	p := graph(title, plainUnit, query{
		`sum by (<stallspan.verdict>, <stallspan.slow>, <stallspan.window.source>) (` + grown(histogram+`{`+onHosts+`}`) + `)`,
		"{{<stallspan.window.source>}}, {{<stallspan.verdict>}}, slow {{<stallspan.slow>}}",
	})
	p.stacked = true
	return p
}

func wholeGPU() board {
	by := func(key string) string { return "by (<host.name>, <hw.id>, <" + key + ">)" }
	of := func(metric string) string { return `<` + metric + `>{` + onGPUs + `}` }
	growth := func(metric string) string { return `rate(` + of(metric) + interval + `)` }
	one := func(title, unit, metric string) panel { return graph(title, unit, highest(byGPU, of(metric), gpuName)) }
	each := func(title, unit, metric, key string) panel {
		return graph(title, unit, highest(by(key), of(metric), gpuName+" {{<"+key+">}}"))
	}
	return board{
		file: "gpu.json", uid: "gpu", title: "Stallspan: GPU",
		says:      "All metrics of a GPU.",
		variables: []variable{hostVariable, gpuVariable}, marks: windowMarks(),
		rows: []row{
			{"Work", []panel{
				graph("Busy", percent, highest(byGPU, growth("stallspan.gpu.busy.time"),
					gpuName)).saying("At least one kernel ran, even if it used little of the chip."),
				each("Utilisation by engine", percent, "hw.gpu.utilization", "hw.gpu.task"),
				one("Multiprocessors with work", percent, "stallspan.gpu.sm.utilization"),
				one("Occupancy of multiprocessors", percent, "stallspan.gpu.sm.occupancy"),
				one("Tensor cores at work", percent, "stallspan.gpu.tensor.utilization"),
				one("Memory bandwidth used", percent, "stallspan.gpu.dram.utilization"),
			}},
			{"Memory", []panel{
				graph("Memory in use", bytesUnit, highest(byGPU, of("hw.gpu.memory.usage"), gpuName),
					highest(byGPU, of("hw.gpu.memory.limit"), gpuName+" all")),
				one("Time in which memory was read or written", percent, "stallspan.gpu.memory.controller.utilization"),
				graph("Memory by process", bytesUnit, highest("by (<host.name>, <hw.id>, <process.pid>)",
					of("stallspan.process.gpu.memory.usage"), gpuName+" {{<process.pid>}}")).wide(),
			}},
			{"Clocks, power and heat", []panel{
				each("Clocks", hertz, "stallspan.gpu.clock.frequency", "stallspan.gpu.clock.domain"),
				graph("Clocks held down, by reason", percent,
					highest(by("stallspan.gpu.clock.throttle.reason"), growth("stallspan.gpu.clock.throttle.time"),
						gpuName+" {{<stallspan.gpu.clock.throttle.reason>}}")).
					saying("Several reasons can apply at the same time."),
				graph("Power", watt, highest(byGPU, `<hw.power>{`+onGPUs+`, <hw.type=gpu>}`, gpuName),
					highest(byGPU, of("stallspan.gpu.power.limit"), gpuName+" limit")),
				graph("Power from energy", watt, highest(byGPU, `rate(<hw.energy>{`+onGPUs+`, <hw.type=gpu>}`+interval+`)`,
					gpuName)).saying("From the energy counter, which misses no peak."),
				graph("Temperature", celsius, highest(by("hw.sensor_location"), of("hw.temperature"),
					gpuName+" {{<hw.sensor_location>}}"),
					query{`min by (<host.name>, <hw.id>, <hw.sensor_location>) (<hw.temperature.limit>{` + onGPUs +
						`, <hw.limit_type=high.degraded>})`, gpuName + " {{<hw.sensor_location>}} slows down"}),
				one("Fan", percent, "hw.fan.speed_ratio"),
			}},
			{"PCIe and NVLink", []panel{
				graph("PCIe", perSecond, highest(by("network.io.direction"), growth("hw.gpu.io"),
					gpuName+" {{<network.io.direction>}}"),
					highest(by("network.io.direction"), of("stallspan.gpu.pcie.throughput"),
						gpuName+" {{<network.io.direction>}} sampled")),
				graph("NVLink", perSecond, highest(by("network.io.direction"), growth("stallspan.gpu.nvlink.io"),
					gpuName+" {{<network.io.direction>}}")),
				each("PCIe lanes", plainUnit, "stallspan.gpu.pcie.link.width", "hw.limit_type"),
				each("PCIe generation", plainUnit, "stallspan.gpu.pcie.link.generation", "hw.limit_type"),
			}},
			{"Errors", []panel{
				graph("Errors so far", plainUnit, highest(by("error.type"), `<hw.errors>{`+onGPUs+`, <hw.type=gpu>}`,
					gpuName+" {{<error.type>}}")).
					saying("ECC, PCIe replays, remapped rows, XIDs. Kinds overlap: do not add them."),
				{title: "Not well", kind: stateTimeline, unit: plainUnit, width: 12, height: 8,
					queries: []query{highest(by("hw.state"), `<hw.status>{`+onGPUs+`, <hw.type=gpu>, <hw.state!=ok>}`,
						gpuName+" {{<hw.state>}}")}},
			}},
		},
	}
}
