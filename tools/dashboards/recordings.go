package main

import "fmt"

// Names of recording rules that others build on.
const (
	gpuBusy       = "stallspan:gpu_busy:ratio5m"
	gpuCauses     = "stallspan:gpu_time:ratio5m"
	gpuLost       = "stallspan:gpu_lost_to_storage:ratio5m"
	gpuHeldIdle   = "stallspan:gpu_held_idle:ratio1h"
	jobGPUs       = "stallspan:job_gpus:rate5m"
	userGPUs      = "stallspan:user_gpus:rate5m"
	diskLost      = "stallspan:gpus_lost_by_disk:rate5m"
	scheduled     = "stallspan:scheduling_goodput:ratio5m"
	productive    = "stallspan:runtime_goodput_most:ratio5m"
	gpuThrottled  = "stallspan:gpu_throttled:ratio1m"
	gpuMargin     = "stallspan:gpu_margin:celsius"
	ioPressure    = "stallspan:host_io_pressure:ratio1m"
	diskQueue     = "stallspan:disk_queue:depth1m"
	diskRate      = "stallspan:disk_operations:rate1m"
	diskAwaitAll  = "stallspan:disk_await:seconds1m"
	diskAwait     = "stallspan:disk_await:seconds5m"
	diskMax       = "stallspan:disk_operations_most:rate1d"
	diskBest      = "stallspan:disk_await_best:seconds1d"
	diskPart      = "stallspan:disk_saturation_part:ratio"
	diskScore     = "stallspan:disk_saturation:ratio"
	diskStuck     = "stallspan:disk_stuck"
	diskSaturated = "stallspan:disk_saturated"
	nodeSaturated = "stallspan:node_storage_saturated"
	windowsSlow   = "stallspan:windows_slow:count10m"
)

// The limits of the events (internal/alert), which a test compares.
const (
	hotMargin        = 3   // degrees Celsius below slowing down
	usualSlowdown    = 88  // degrees Celsius, for a chip that reports no limit
	throttledMuch    = 0.2 // share of the time
	deepQueue        = 2   // operations in flight
	nearCeiling      = 0.8 // share of the highest throughput
	longAwait        = 2   // times the shortest
	enoughOperations = 4   // operations a second; with fewer their mean is not reliable
)

// The labels that rules keep. Several senders of one machine may report the same devices; rules take the maximum.
const (
	byHost    = "by (<host.name>)"
	byCluster = "by (<k8s.cluster.name>)"
	byGPU     = "by (<host.name>, <hw.id>)"
	byCause   = "by (<host.name>, <hw.id>, <stallspan.gpu.time.cause>)"
	byJob     = "by (<host.name>, <k8s.namespace.name>, <k8s.pod.name>, <slurm.job.id>, <process.owner>, " +
		"<stallspan.job.name>, <stallspan.gpu.time.cause>)"
	byUser = "by (<k8s.cluster.name>, <k8s.namespace.name>, <process.owner>, <stallspan.gpu.time.cause>)"
	byDisk = "by (<host.name>, <system.device.name>)"
	byWay  = "by (<host.name>, <system.device.name>, <disk.io.direction>)"
)

// ofGPU selects the temperatures of GPUs: those of drives have no location.
const ofGPU = `<hw.sensor_location!=>`

// held selects throttling by a fault of cooling or power supply, without the power cap.
const held = `<stallspan.gpu.clock.throttle.reason=~thermal|hw_thermal|power_brake>`

func recordings() []rule {
	sensor := "by (<host.name>, <hw.id>, <hw.sensor_location>)"
	rules := []rule{
		record(gpuBusy, "Share of the last 5 min in which the GPU worked.",
			`clamp_max(max `+byGPU+` (rate(<stallspan.gpu.busy.time>[5m])), 1)`),
		record("stallspan:host_gpu_busy:ratio5m", "The same, as the mean of the machine's GPUs.",
			`avg `+byHost+` (`+gpuBusy+`)`),
		record(gpuCauses, "Share of the last 5 min that the GPU spent on each cause, all jobs together.",
			`sum `+byCause+` (rate(<stallspan.gpu.time>[5m])) / on (<host.name>, <hw.id>) group_left () sum `+byGPU+
				` (rate(<stallspan.gpu.time>[5m]))`),
		record(gpuLost, "Share of the last 5 min in which the GPU was idle while its job waited for storage, from ledgers.",
			`max `+byGPU+` (`+gpuCauses+`{<stallspan.gpu.time.cause=storage>})`),
		record(gpuHeldIdle, "Share of the last hour in which the GPU was idle although a process held memory of it. Only "+
			"for GPUs that were held for nearly all of that hour.",
			`(sum `+byGPU+` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause!=busy>, <stallspan.gpu.time.cause!=idle>}[1h])) / sum `+
				byGPU+` (rate(<stallspan.gpu.time>[1h]))) unless sum `+byGPU+
				` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause=idle>}[1h])) >= 0.02`),
		record(jobGPUs, "How many GPUs each job held, by what it did with them.",
			`sum `+byJob+` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause!=idle>}[5m]))`),
		record(userGPUs, "How many GPUs each cluster, namespace and user had, by what they did. Their sum over time is GPU "+
			"hours.",
			`sum `+byUser+` (rate(<stallspan.gpu.time>[5m]))`),
		record(diskLost, "How many GPUs of the machine waited for storage, divided among its disks by their operations in "+
			"flight. A guess where several disks work, and nothing where only a network file system does.",
			`(max `+byDisk+` (rate(<system.disk.weighted_io_time>[5m])) and max `+byDisk+` (<stallspan.disk.throughput.ceiling>)) `+
				`/ on (<host.name>) group_left () (sum `+byHost+` (max `+byDisk+` (rate(<system.disk.weighted_io_time>[5m])) and max `+
				byDisk+` (<stallspan.disk.throughput.ceiling>)) > 0) * on (<host.name>) group_left () sum `+byHost+
				` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause=storage>}[5m]))`),
		record(scheduled, "Share of the GPU time that jobs held: scheduling goodput at the most.",
			`sum `+byCluster+` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause!=idle>}[5m])) / sum `+byCluster+
				` (rate(<stallspan.gpu.time>[5m]))`),
		record(productive, "Share of the held GPU time in which the GPU worked: runtime goodput at the most.",
			`sum `+byCluster+` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause=busy>}[5m])) / (sum `+byCluster+
				` (rate(<stallspan.gpu.time>{<stallspan.gpu.time.cause!=idle>}[5m])) > 0)`),
		record(ioPressure, "Share of the last minute in which a task of the machine waited for storage, network file "+
			"systems included.",
			`clamp_max(max `+byHost+` (rate(<system.linux.pressure.io.stall.time>{<system.linux.pressure.stall_type=some>}[1m])), 1)`),
		record(gpuThrottled,
			"Share of the last minute in which heat or the power supply reduced the GPU's clocks. The power cap does not count.",
			`max `+byGPU+` (rate(<stallspan.gpu.clock.throttle.time>{`+held+`}[1m]))`),
		record(gpuMargin, fmt.Sprintf("Degrees Celsius below the slowdown limit of the GPU or its memory, or below %d C if "+
			"it reports no limit.", usualSlowdown),
			fmt.Sprintf(`min %[1]s (<hw.temperature.limit>{%[2]s, <hw.limit_type=high.degraded>}) - max %[1]s (<hw.temperature>{%[2]s}) `+
				`or %[3]d - max %[1]s (<hw.temperature>{<hw.sensor_location=gpu>})`, sensor, ofGPU, usualSlowdown)),
	}
	return append(append(rules, diskRecordings()...), windowRecordings()...)
}

func diskRecordings() []rule {
	part := func(of, says, expr string) rule {
		r := record(diskPart, says, expr)
		r.Labels = map[string]string{"of": of}
		return r
	}
	busiest := func(metric string) string { return `max ` + byWay + ` (rate(` + metric + `[1m]))` }
	rules := []rule{
		record(diskQueue, "Operations in flight, mean of the last minute.",
			`max `+byDisk+` (rate(<system.disk.weighted_io_time>[1m]))`),
		record(diskRate, "Operations a second, reads and writes, in the last minute.",
			`sum `+byDisk+` (`+busiest("<system.disk.operations>")+`)`),
		record(diskAwaitAll, "Mean seconds per operation in the last minute.",
			`sum `+byDisk+` (`+busiest("<system.disk.operation_time>")+`) / (`+diskRate+` > 0)`),
		record(diskAwait, "Mean seconds per read or write in the last 5 min.", fmt.Sprintf(
			`max %[1]s (rate(<system.disk.operation_time>[5m])) / (max %[1]s (rate(<system.disk.operations>[5m])) > 0)`, byWay)),
		part("queue", fmt.Sprintf("The queue depth divided by %d.", deepQueue), fmt.Sprintf(`%s / %d`, diskQueue, deepQueue)),
		part("throughput", fmt.Sprintf("Throughput or operations, divided by %v of the highest value seen.", nearCeiling),
			fmt.Sprintf(
				`max %[1]s (label_replace(sum %[1]s (%[2]s / max %[3]s (<stallspan.disk.throughput.ceiling>)), "by", "bytes", "", "") `+
					`or label_replace(%[4]s / %[5]s, "by", "operations", "", "")) / %[6]v`,
				byDisk, busiest("<system.disk.io>"), byWay, diskRate, diskMax, nearCeiling)),
		part("await", fmt.Sprintf("The time of an operation, divided by %d times the shortest.", longAwait),
			fmt.Sprintf(`%s / %s / %d`, diskAwaitAll, diskBest, longAwait)),
		record(diskScore, "How saturated a disk is: 1 or more is saturated. The minimum of the three parts above, for "+
			"disks without a lower device.",
			fmt.Sprintf(`min %[1]s (%[2]s) and count %[1]s (%[2]s) == 3 and max %[1]s (<stallspan.disk.throughput.ceiling>)`,
				byDisk, diskPart)),
		record(diskStuck, "1 for a disk that completed no operation in the last minute with operations in flight. No "+
			"series otherwise.",
			`(max `+byDisk+` (min_over_time(<system.disk.pending_operations>[1m])) > bool 0) == 1 and `+diskRate+` == 0`),
		record(diskSaturated, "1 for a disk that is saturated or stuck, else 0.",
			fmt.Sprintf(`%s or %s >= bool 1 or %s * 0`, diskStuck, diskScore, diskRate)),
		record(nodeSaturated,
			"1 for a machine with a disk that was saturated within the last 2 min, else 0. For gates and autoscalers: start "+
				"no further readers there.",
			`max `+byHost+` (max_over_time(`+diskSaturated+`[2m]))`),
	}
	return rules
}

// bests are the best values of a disk. They look back over a day, so they are evaluated less often.
func bests() []rule {
	return []rule{
		record(diskMax, "The highest rate of operations of the last day.", `max_over_time(`+diskRate+`[1d])`),
		record(diskBest, "The shortest mean time of an operation in a minute of the last day with enough operations.",
			fmt.Sprintf(`min_over_time((%s and %s >= %d)[1d:1m])`, diskAwaitAll, diskRate, enoughOperations)),
	}
}

func windowRecordings() []rule {
	slow := func(kind, histogram string) rule {
		r := record(windowsSlow,
			"Slow windows of the kind that ended in the last 10 min, by source. Spans of the processor are not counted.",
			`sum by (<host.name>, <stallspan.window.source>) (`+grown(histogram+`{<stallspan.slow=true>}`)+`)`)
		r.Labels = map[string]string{"kind": kind}
		return r
	}
	return []rule{
		slow("epoch", "<stallspan.training.epoch.duration_count>"),
		slow("model_load", "<stallspan.model.load.duration_count>"),
	}
}

// grown is the growth of a counter within 10 min. The growth of a new counter is its whole value, which
// increase() does not see: such series begin at 1.
func grown(counter string) string {
	return fmt.Sprintf(`increase(%[1]s[10m]) > 0 or (last_over_time(%[1]s[10m]) unless last_over_time(%[1]s[1d] offset 10m))`, counter)
}
