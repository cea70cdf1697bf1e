package main

// gpuHours shows whose GPU hours went where.
func gpuHours() board {
	const (
		cause   = "<stallspan.gpu.time.cause>"
		cluster = "<k8s.cluster.name>"
		job     = "{{<k8s.namespace.name>}} {{<k8s.pod.name>}} {{<slurm.job.id>}} {{<stallspan.job.name>}} " +
			"{{<process.owner>}}"
		byWho = "by (<k8s.namespace.name>, <k8s.pod.name>, <slurm.job.id>, <stallspan.job.name>, <process.owner>)"
		all   = `<stallspan.gpu.time>{` + onGPUs + `}`
		held  = `<stallspan.gpu.time>{` + onGPUs + `, <stallspan.gpu.time.cause!=idle>}`
		lost  = `<stallspan.gpu.time>{` + onGPUs + `, <stallspan.gpu.time.cause=~storage|cpu|other>}`
	)
	of := func(one string) string {
		return `<stallspan.gpu.time>{` + onGPUs + `, <stallspan.gpu.time.cause=` + one + `>}`
	}
	// hours are those of the dashboard's range.
	hours := func(by, what string) string { return `sum ` + by + ` (increase(` + what + `[$__range])) / 3600` }
	listed := func(title, says, expr, legend string) panel {
		return panel{title: title, says: says, kind: table, unit: plainUnit, width: 12, height: 9,
			queries: []query{{expr, legend}}}
	}
	most := func(title, what, says string) panel {
		return listed(title, says, `topk(10, `+hours(byWho, what)+`)`, job)
	}
	by := func(title, says, key string) panel {
		return listed(title, says, hours(`by (`+key+`, `+cause+`)`, all), "{{"+key+"}} {{"+cause+"}}")
	}
	stacked := func(p panel) panel { p.stacked = true; return p }
	const noUser = "Time that no job held has no user and no namespace."
	return board{
		file: "gpu-hours.json", uid: "gpu-hours", title: "Stallspan: GPU hours",
		says:      "Whose GPU hours went where: by cause, by job, and what they cost.",
		variables: []variable{hostVariable, gpuVariable, priceVariable}, marks: windowMarks(),
		rows: []row{
			{"All GPUs", []panel{
				stacked(graph("GPUs by what they did", plainUnit, query{`sum by (` + cause + `) (rate(` + all + interval + `))`,
					"{{" + cause + "}}"})).wide().
					saying("busy is useful time. storage, cpu and other are idle time of a GPU that a job held, and idle is that " +
						"of one that no process held."),
				listed("GPU hours of this range, by cause", "", hours(`by (`+cause+`)`, all), "{{"+cause+"}}"),
				by("By machine and cause", "", "<host.name>"),
			}},
			{"Whose", []panel{
				by("By cluster and cause", "Set k8s.cluster.name in the Collector or by relabeling.", cluster),
				by("By namespace and cause", noUser, "<k8s.namespace.name>"),
				by("By user and cause", noUser, "<process.owner>"),
				listed("By model of the GPU and cause", "", `sum by (<hw.model>, `+cause+`) (sum `+byCause+` (increase(`+all+
					`[$__range])) * on (<host.name>, <hw.id>) group_left (<hw.model>) group by (<host.name>, <hw.id>, <hw.model>) `+
					`(last_over_time(<stallspan.gpu.busy.time>{`+onGPUs+`}[$__range]))) / 3600`, "{{<hw.model>}} {{"+cause+"}}"),
				graph("GPUs lost to storage, by disk", plainUnit, query{diskLost + `{` + onHosts + `}`, diskName}).wide().
					saying("Divided among the disks of a machine by their operations in flight: a guess where several work. Time " +
						"lost to network file systems has no disk. From rules.yaml."),
			}},
			{"Cost", []panel{
				listed("Cost of this range, by cause", "At the price of a GPU hour that is typed above; 1 by default.",
					hours(`by (`+cause+`)`, all)+` * $price`, "{{"+cause+"}}"),
				listed("Cost of what jobs lost, by namespace and user", "storage, cpu and other.",
					hours(`by (<k8s.namespace.name>, <process.owner>)`, lost)+` * $price`, "{{<k8s.namespace.name>}} {{<process.owner>}}"),
				listed("Jobs that lost most", "", `topk(10, `+hours(byWho, lost)+` * $price)`, job),
				listed("Cost of GPUs that no job held, by machine", "", hours(byHost, of("idle"))+` * $price`, "{{<host.name>}}"),
			}},
			{"Goodput", []panel{
				graph("Scheduling and runtime goodput, at the most", percent,
					query{scheduled, "{{" + cluster + "}} scheduling"},
					query{productive, "{{" + cluster + "}} runtime"}).wide().
					saying("Of all machines. Upper bounds: whether a job waits for its other GPUs, and whether its work was lost " +
						"later, is not known. Program goodput is not known at all. From rules.yaml."),
				listed("Badput of this range, in hours", "Not held; held and idle for storage (data, checkpoints, loads of "+
					"models), for the CPU (data loading), or otherwise (start-up, waiting for peers, nothing to do).",
					hours(`by (`+cause+`)`, `<stallspan.gpu.time>{`+onGPUs+`, <stallspan.gpu.time.cause!=busy>}`), "{{"+cause+"}}"),
				listed("GPUs that were held and idle for the last hour", "From rules.yaml; its alert is StallspanGPUHeldIdle.",
					gpuHeldIdle+`{`+onGPUs+`} >= 0.98`, gpuName),
			}},
			{"Jobs", []panel{
				stacked(graph("GPUs by job", plainUnit, query{`sum ` + byWho + ` (rate(` + held + interval + `))`, job})).wide(),
				most("Most GPU hours", held, "Held, whatever they did with them."),
				most("Most hours lost to storage", of("storage"), ""),
				most("Most hours lost to the CPU", of("cpu"), "The input pipeline used or waited for a CPU."),
				most("Most hours lost otherwise", of("other"), "Among these are jobs that hold a GPU and launch no work."),
			}},
		},
	}
}
