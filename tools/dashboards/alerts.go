package main

import (
	"fmt"
	"strings"
)

// Labels in the texts of alerts.
const (
	onHost  = "{{ $labels.<host.name> }}"
	theGPU  = "{{ $labels.<hw.id> }} of " + onHost
	theDisk = "{{ $labels.<system.device.name> }} of " + onHost
)

// programsFault lists the XIDs that programs cause, not the hardware.
const programsFault = "xid_13|xid_31|xid_43|xid_45"

func gpuAlerts() []rule {
	state := func(state string) string {
		return `max ` + byGPU + ` (<hw.status>{<hw.type=gpu>, <hw.state=` + state + `>}) == 1`
	}
	answers := `max ` + byGPU + ` (<hw.gpu.memory.usage>)`
	xid := func(more string) string {
		return `max by (<host.name>, <hw.id>, <error.type>) (` +
			grown(`<hw.errors>{<hw.type=gpu>, <error.type=~xid_.+>`+more+`}`) + `)`
	}
	return []rule{
		alert("StallspanGPUHot", severityWarning,
			rule{Expr: fmt.Sprintf("%s <= %d", gpuMargin, hotMargin), For: "30s", Keep: "2m",
				event: "stallspan.gpu.temperature.high"},
			"GPU "+theGPU+" is {{ $value }} C below its slowdown limit",
			fmt.Sprintf("The chip or its memory ({{ $labels.<hw.sensor_location> }}) is at most %d C below its slowdown "+
				"limit, or above %d C if it reports no limit. "+
				"Check its fans, the air flow and its neighbours.", hotMargin, usualSlowdown-hotMargin)),
		alert("StallspanGPUThrottled", severityWarning,
			rule{Expr: fmt.Sprintf("%s >= %v", gpuThrottled, throttledMuch), For: "1m", Keep: "2m",
				event: "stallspan.gpu.throttled"},
			"GPU "+theGPU+" runs at reduced clocks {{ $value | humanizePercentage }} of the time",
			"Heat or the power supply reduces its clocks; the power cap does not count. Check cooling and power supply."),
		alert("StallspanGPULost", severityCritical, rule{Expr: state("failed"), event: "stallspan.gpu.lost"},
			"GPU "+theGPU+" is lost",
			"The driver reports it lost or no longer lists it. Look for Xid and NVRM in the kernel log. Restart its programs, "+
				"and often the machine."),
		alert("StallspanGPUHung", severityCritical,
			rule{Expr: state("degraded") + ` unless ` + answers, For: "30s", event: "stallspan.gpu.lost"},
			"GPU "+theGPU+" does not answer",
			"The driver has not answered in time. Look for Xid and NVRM in the kernel log."),
		alert("StallspanGPUNeedsReset", severityWarning, rule{Expr: state("degraded") + ` and ` + answers, For: "10m"},
			"GPU "+theGPU+" needs a reset",
			"A reset replaces a row or page of its memory by a spare one. Drain it, then reset it or restart the machine."),
		alert("StallspanGPUFailing", severityCritical, rule{Expr: state("predicted_failure")},
			"GPU "+theGPU+" needs replacement",
			"A row of its memory is broken and no spare row could replace it."),
		alert("StallspanGPUError", severityCritical,
			rule{Expr: xid(", <error.type!~" + programsFault + ">"), event: "stallspan.gpu.error"},
			"GPU "+theGPU+" has reported {{ $labels.<error.type> }}",
			"Within the last 10 min. Look up the code in NVIDIA's table of XID errors and in the kernel log."),
		alert("StallspanGPUProgramError", severityWarning,
			rule{Expr: xid(", <error.type=~" + programsFault + ">"), event: "stallspan.gpu.error"},
			"A program on GPU "+theGPU+" caused {{ $labels.<error.type> }}",
			"Within the last 10 min. Usually a program causes it, not the hardware. Check the program's log."),
		alert("StallspanGPUStarved", severityInfo, rule{Expr: gpuLost + " >= 0.15", For: "15m", Keep: "5m"},
			"GPU "+theGPU+" loses {{ $value | humanizePercentage }} of its time to storage",
			"It is idle while its job waits for storage. stallspan jobs names the job, and the spans of slow windows name the "+
				"epoch or load and the remedy."),
		alert("StallspanGPUHeldIdle", severityInfo, rule{Expr: gpuHeldIdle + " >= 0.98", For: "10m", Keep: "5m"},
			"GPU "+theGPU+" is held, and has done nothing for an hour",
			"A process holds memory of it and launches no work: often a notebook, a debugger, or a job that hangs. "+
				"stallspan jobs names it."),
	}
}

func diskAlerts() []rule {
	drive := []string{"hw.status", "hw.type=physical_disk", "hw.name"}
	state := func(state string) string {
		return `max by (<host.name>, <hw.id>, <hw.name>) (<hw.status>{<hw.type=physical_disk>, <hw.state=` + state +
			`>}) == 1`
	}
	const theDrive = "{{ $labels.<hw.name> }} ({{ $labels.<hw.id> }}) of " + onHost
	return []rule{
		alert("StallspanDiskSaturated", severityWarning,
			rule{Expr: diskSaturated + ` == 1 unless ` + diskStuck, For: "30s", Keep: "1m", event: "stallspan.disk.saturated"},
			"Disk "+theDisk+" is saturated",
			fmt.Sprintf("In the last minute at least %d operations were in flight at %.0f %% of its highest throughput, and "+
				"each took %d times its best time. "+
				"Start no further readers.", deepQueue, nearCeiling*100, longAwait)),
		alert("StallspanDiskStuck", severityCritical,
			rule{Expr: diskStuck + ` == 1`, For: "30s", event: "stallspan.disk.saturated"},
			"Disk "+theDisk+" completes no operation",
			"Operations are in flight, and none completed for over a minute. Check the kernel log, cable and power."),
		alert("StallspanDiskFailing", severityCritical,
			rule{Expr: state("predicted_failure"), needs: drive, event: "stallspan.disk.health"},
			"Drive "+theDrive+" is failing",
			"According to its own status or its counters. Copy its data and plan to replace it; `stallspan health` on the "+
				"machine gives the reason."),
		alert("StallspanDiskFailed", severityCritical,
			rule{Expr: state("failed"), needs: drive, event: "stallspan.disk.health"},
			"Drive "+theDrive+" has failed, or has vanished",
			"It reports a failure, does not answer, or the machine no longer lists it. Check its cable, its slot and the "+
				"kernel log; `stallspan health` on the machine gives the reason."),
	}
}

func windowAlerts() []rule {
	return []rule{
		alert("StallspanWindowSlow", severityWarning, rule{Expr: windowsSlow + ` > 0`, event: "stallspan.window.slow"},
			"{{ $value | printf \"%.0f\" }} windows on "+onHost+" were slow",
			"Windows ({{ $labels.kind }}, {{ $labels.<stallspan.window.source> }}) that ended in the last 10 min. "+
				"Their spans hold the reason in stallspan.finding and the remedy in stallspan.remedy."),
		alert("StallspanIOStorm", severityWarning,
			rule{Expr: `sum ` + byHost + ` (` + windowsSlow + `) >= 2 and max_over_time(` + nodeSaturated +
				`[10m]) == 1`, event: "stallspan.io.storm"},
			"{{ $value | printf \"%.0f\" }} slow windows on "+onHost+", whose storage is saturated",
			"Within the last 10 min. Metrics do not show whether they read from one disk at the same time; the event does. "+
				"Start fewer at a time, or keep their files in memory."),
	}
}

// parts are what the agent reports, each with a metric that is always present while it works.
var parts = [...]struct{ name, metric string }{
	{"cpu", "<system.cpu.time>"},
	{"disks", "<stallspan.disk.utilization>"},
	{"gpus", "<stallspan.gpu.busy.time>"},
	{"pressure", "<system.linux.pressure.io.stall.time>"},
}

func agentAlerts() []rule {
	now, before := make([]string, len(parts)), make([]string, len(parts))
	var missing []string
	for i, p := range parts {
		now[i] = `group ` + byHost + ` (` + p.metric + `)`
		before[i] = `group ` + byHost + ` (last_over_time(` + p.metric + `[1h]))`
		missing = append(missing, fmt.Sprintf(`label_replace(%s unless %s, "part", "%s", "", "")`, before[i], now[i], p.name))
	}
	alive := strings.Join(now, " or ")
	return []rule{
		alert("StallspanAgentGone", severityCritical,
			rule{Expr: `(` + strings.Join(before, " or ") + `) unless (` + alive +
				`)`, For: "2m", event: "stallspan.agent.degraded"},
			onHost+" sends no metrics",
			"It did within the last hour. Check that the machine is up and that the agent or the Collector runs, and read its "+
				"log."),
		alert("StallspanAgentDegraded", severityWarning,
			rule{Expr: `(` + strings.Join(missing, " or ") + `) and on (<host.name>) (` + alive +
				`)`, For: "2m", event: "stallspan.agent.degraded"},
			onHost+" sends no metrics of its {{ $labels.part }}",
			"It did within the last hour, and still sends others. `stallspan check` on the machine lists what it can read, "+
				"and the fixes."),
		alert("StallspanPanicked", severityWarning,
			rule{Expr: `max ` + byHost + ` (increase(<stallspan.panics>[1h])) > 0`},
			"A part of Stallspan on "+onHost+" ended by a bug and started again",
			"Within the last hour. The log has the place. Please report it with the output of `stallspan check --bundle FILE`."),
		alert("StallspanLoses", severityWarning,
			rule{Expr: `max ` + byHost + ` (increase(<stallspan.export.dropped>[15m])) > 0`},
			onHost+" loses spans or log records",
			"Within the last 15 min. The backend was away for too long or refuses them: the log says why."),
		alert("StallspanHostUnnamed", severityWarning,
			rule{Expr: `count(<stallspan.disk.utilization>{<host.name=>} or <system.linux.pressure.io.stall.time>{<host.name=>}) > 0`, For: "5m"},
			"{{ $value }} series have no host name",
			"All rules identify machines by host_name: turn the resource attribute host.name into a label."),
	}
}
