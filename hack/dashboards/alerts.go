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

// programsFault lists the XIDs that a program brings about rather than the hardware.
const programsFault = "xid_13|xid_31|xid_43|xid_45"

func gpuAlerts() []rule {
	state := func(state string) string {
		return `max ` + byGPU + ` (<hw.status>{<hw.type=gpu>, <hw.state=` + state + `>}) == 1`
	}
	answers := `max ` + byGPU + ` (<hw.gpu.memory.usage>)`
	xid := func(more string) string {
		return `max by (<host.name>, <hw.id>, <error.type>) (` + grown(`<hw.errors>{<hw.type=gpu>, <error.type=~xid_.+>`+more+`}`) + `)`
	}
	return []rule{
		alert("StallspanGPUHot", severityWarning,
			rule{Expr: fmt.Sprintf("%s <= %d", gpuMargin, hotMargin), For: "30s", Keep: "2m", event: "stallspan.gpu.temperature.high"},
			"GPU "+theGPU+" is {{ $value }} C below where it slows down",
			fmt.Sprintf("The chip or its memory ({{ $labels.<hw.sensor_location> }}) is %d C or less below where it slows itself down, or at %d C where it tells no limit. "+
				"Look at its fans, its air and what is beside it.", hotMargin, usualSlowdown-hotMargin)),
		alert("StallspanGPUThrottled", severityWarning,
			rule{Expr: fmt.Sprintf("%s >= %v", gpuThrottled, throttledMuch), For: "1m", Keep: "2m", event: "stallspan.gpu.throttled"},
			"GPU "+theGPU+" is slowed down {{ $value | humanizePercentage }} of the time",
			"Heat or the power supply holds its clocks down; the power cap alone does not count. Look at cooling and power supply."),
		alert("StallspanGPULost", severityCritical, rule{Expr: state("failed"), event: "stallspan.gpu.lost"},
			"GPU "+theGPU+" is lost",
			"Its driver says that it is gone, or lists it no more. Look for Xid and NVRM in the kernel's log; programs on it have to be started anew, often the machine too."),
		alert("StallspanGPUHung", severityCritical, rule{Expr: state("degraded") + ` unless ` + answers, For: "30s", event: "stallspan.gpu.lost"},
			"GPU "+theGPU+" does not answer",
			"Its driver has not answered for too long. Look for Xid and NVRM in the kernel's log."),
		alert("StallspanGPUNeedsReset", severityWarning, rule{Expr: state("degraded") + ` and ` + answers, For: "10m"},
			"GPU "+theGPU+" is to be reset",
			"A row or page of its memory is to be replaced by a spare one, which happens when it is reset: drain it, then reset it or start the machine anew."),
		alert("StallspanGPUFailing", severityCritical, rule{Expr: state("predicted_failure")},
			"GPU "+theGPU+" is to be replaced",
			"A row of its memory is broken and could not be replaced by a spare one."),
		alert("StallspanGPUError", severityCritical, rule{Expr: xid(", <error.type!~" + programsFault + ">"), event: "stallspan.gpu.error"},
			"GPU "+theGPU+" has reported {{ $labels.<error.type> }}",
			"Within the last 10 min. Look the code up in NVIDIA's table of XID errors, and in the kernel's log."),
		alert("StallspanGPUProgramError", severityWarning, rule{Expr: xid(", <error.type=~" + programsFault + ">"), event: "stallspan.gpu.error"},
			"A program on GPU "+theGPU+" has brought about {{ $labels.<error.type> }}",
			"Within the last 10 min. As a rule a program brings it about, not the hardware. Look into the program's log."),
		alert("StallspanGPUStarved", severityInfo, rule{Expr: gpuLost + " >= 0.15", For: "15m", Keep: "5m"},
			"GPU "+theGPU+" loses {{ $value | humanizePercentage }} of its time to storage",
			"An estimate: it is idle while something on the machine waits for storage. The spans of slow windows say which epoch or load it is, and what to do."),
	}
}

func diskAlerts() []rule {
	drive := []string{"hw.status", "hw.type=physical_disk", "hw.name"}
	state := func(state string) string {
		return `max by (<host.name>, <hw.id>, <hw.name>) (<hw.status>{<hw.type=physical_disk>, <hw.state=` + state + `>}) == 1`
	}
	const theDrive = "{{ $labels.<hw.name> }} ({{ $labels.<hw.id> }}) of " + onHost
	return []rule{
		alert("StallspanDiskSaturated", severityWarning,
			rule{Expr: diskSaturated + ` == 1 unless ` + diskStuck, For: "30s", Keep: "1m", event: "stallspan.disk.saturated"},
			"Disk "+theDisk+" has as much to do as it can",
			fmt.Sprintf("Over the last minute %d operations or more were under way, with %.0f %% of the most that was ever seen of it, and each took %d times as long as at best. "+
				"Start nothing more that reads from it.", deepQueue, nearCeiling*100, longAwait)),
		alert("StallspanDiskStuck", severityCritical, rule{Expr: diskStuck + ` == 1`, For: "30s", event: "stallspan.disk.saturated"},
			"Disk "+theDisk+" completes nothing",
			"Something is under way, and nothing was completed for more than a minute. Look at the kernel's log, its cable and its power."),
		alert("StallspanDiskFailing", severityCritical, rule{Expr: state("predicted_failure"), needs: drive, event: "stallspan.disk.health"},
			"Drive "+theDrive+" is failing",
			"By its own word or by its counters. Copy what is on it and plan to replace it; `stallspan health` on the machine says why."),
		alert("StallspanDiskFailed", severityCritical, rule{Expr: state("failed"), needs: drive, event: "stallspan.disk.health"},
			"Drive "+theDrive+" has failed, or has vanished",
			"It says so itself, does not answer, or the machine lists it no more. Look at its cable, its slot and the kernel's log; `stallspan health` on the machine says which."),
	}
}

func windowAlerts() []rule {
	return []rule{
		alert("StallspanWindowSlow", severityWarning, rule{Expr: windowsSlow + ` > 0`, event: "stallspan.window.slow"},
			"{{ $value | printf \"%.0f\" }} windows on "+onHost+" were slow",
			"Windows ({{ $labels.kind }}) that ended in the last 10 min. Their spans say why, in stallspan.finding, and what to do, in stallspan.remedy."),
		alert("StallspanIOStorm", severityWarning,
			rule{Expr: `sum ` + byHost + ` (` + windowsSlow + `) >= 2 and max_over_time(` + nodeSaturated + `[10m]) == 1`, event: "stallspan.io.storm"},
			"{{ $value | printf \"%.0f\" }} slow windows on "+onHost+", whose storage is saturated",
			"Within the last 10 min. The event itself knows that they read from one disk at once; metrics know this much. Start fewer of them at once, or keep what they read in memory."),
	}
}

// parts are what the agent tells, each with a metric that is always there while it works.
var parts = [...]struct{ name, metric string }{
	{"cpu", "<system.cpu.time>"},
	{"disks", "<stallspan.disk.utilization>"},
	{"gpus", "<stallspan.gpu.busy.time>"},
	{"pressure", "<stallspan.pressure.io.stall.time>"},
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
		alert("StallspanAgentGone", severityCritical, rule{Expr: `(` + strings.Join(before, " or ") + `) unless (` + alive + `)`, For: "2m", event: "stallspan.agent.degraded"},
			onHost+" is not heard of any more",
			"It told of itself within the last hour. Look whether the machine is up, whether the agent or the Collector runs, and what it says in its log."),
		alert("StallspanAgentDegraded", severityWarning,
			rule{Expr: `(` + strings.Join(missing, " or ") + `) and on (<host.name>) (` + alive + `)`, For: "2m", event: "stallspan.agent.degraded"},
			onHost+" tells nothing of its {{ $labels.part }} any more",
			"It did within the last hour, and tells of the rest. `stallspan check` on the machine says what can be seen, and what would fix it."),
		alert("StallspanHostUnnamed", severityWarning, rule{Expr: `count(<stallspan.disk.utilization>{<host.name=>} or <stallspan.pressure.io.stall.time>{<host.name=>}) > 0`, For: "5m"},
			"{{ $value }} series do not say of which machine they are",
			"All rules tell machines apart by host_name: have the resource attribute host.name made a label."),
	}
}
