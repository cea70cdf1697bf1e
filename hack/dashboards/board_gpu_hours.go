package main

// gpuHours shows whose GPU hours went where.
func gpuHours() board {
	const (
		cause = "<stallspan.gpu.time.cause>"
		job   = "{{<k8s.namespace.name>}} {{<k8s.pod.name>}} {{<stallspan.slurm.job.id>}} {{<stallspan.job.name>}} " +
			"{{<process.owner>}}"
		byWho = "by (<k8s.namespace.name>, <k8s.pod.name>, <stallspan.slurm.job.id>, <stallspan.job.name>, <process.owner>)"
		all   = `<stallspan.gpu.time>{` + onGPUs + `}`
	)
	of := func(one string) string {
		return `<stallspan.gpu.time>{` + onGPUs + `, <stallspan.gpu.time.cause=` + one + `>}`
	}
	// hours are those of the dashboard's range.
	hours := func(by, what string) string { return `sum ` + by + ` (increase(` + what + `[$__range])) / 3600` }
	most := func(title, what, says string) panel {
		return panel{title: title, says: says, kind: table, unit: plainUnit, width: 12, height: 9,
			queries: []query{{`topk(10, ` + hours(byWho, what) + `)`, job}}}
	}
	stacked := func(p panel) panel { p.stacked = true; return p }
	return board{
		file: "gpu-hours.json", uid: "gpu-hours", title: "Stallspan: GPU hours",
		says:      "Whose GPU hours went where: by cause and by job.",
		variables: []variable{hostVariable, gpuVariable}, marks: windowMarks(),
		rows: []row{
			{"All GPUs", []panel{
				stacked(graph("GPUs by what they did", plainUnit, query{`sum by (` + cause + `) (rate(` + all + interval + `))`,
					"{{" + cause + "}}"})).wide().
					saying("busy is useful time. storage, cpu and other are idle time of a GPU that a job held, and idle is that " +
						"of one that no process held."),
				{title: "GPU hours of this range, by cause", kind: table, unit: plainUnit, width: 12, height: 9,
					queries: []query{{hours(`by (`+cause+`)`, all), "{{" + cause + "}}"}}},
				{title: "GPU hours of this range, by machine and cause", kind: table, unit: plainUnit, width: 12, height: 9,
					queries: []query{{hours(`by (<host.name>, `+cause+`)`, all), "{{<host.name>}} {{" + cause + "}}"}}},
			}},
			{"Jobs", []panel{
				stacked(graph("GPUs by job", plainUnit, query{`sum ` + byWho + ` (rate(` + `<stallspan.gpu.time>{` + onGPUs +
					`, <stallspan.gpu.time.cause!=idle>}` + interval + `))`, job})).wide(),
				most("Most GPU hours", `<stallspan.gpu.time>{`+onGPUs+`, <stallspan.gpu.time.cause!=idle>}`, "Held, whatever they did with them."),
				most("Most hours lost to storage", of("storage"), ""),
				most("Most hours lost to the CPU", of("cpu"), "The input pipeline used or waited for a CPU."),
				most("Most hours lost otherwise", of("other"), "Among these are jobs that hold a GPU and launch no work."),
			}},
		},
	}
}
