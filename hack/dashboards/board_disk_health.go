package main

// diskHealth is what drives tell of themselves. Each part of it appears once its names are registered.
func diskHealth() board {
	const by = "by (<host.name>, <hw.id>, <hw.name>)"
	const name = "{{<host.name>}} {{<hw.name>}}"
	const drives = onHosts + `, <hw.type=physical_disk>`
	// Drives are asked each ten minutes, and points have the time of that. Prometheus forgets a point after five.
	last := func(selector string) string { return `last_over_time(` + selector + `[20m])` }
	one := func(title, unit, metric string, more ...string) panel {
		return graph(title, unit, most(by, last(`<`+metric+`>{`+onHosts+`}`), name)).onceThereIs(append(more, metric)...)
	}
	smart := func(title string) panel {
		return graph(title, plainUnit, most("by (<host.name>, <hw.id>, <hw.name>, <hw.physical_disk.smart_attribute>)",
			last(`<hw.physical_disk.smart>{`+onHosts+`}`), name+" {{<hw.physical_disk.smart_attribute>}}")).
			onceThereIs("hw.physical_disk.smart", "hw.physical_disk.smart_attribute")
	}
	return board{
		file: "disk-health.json", uid: "disk-health", title: "Stallspan: disk health",
		says:      "What the drives tell of themselves (SMART).",
		variables: []variable{hostVariable},
		needs:     []string{"hw.type=physical_disk", "hw.name"},
		rows: []row{
			{"State", []panel{
				{title: "Drives that are not well", kind: table, width: 24, height: 8, needs: []string{"hw.model"},
					queries: []query{{`max by (<host.name>, <hw.name>, <hw.model>, <hw.id>, <hw.state>) (<hw.status>{` + drives + `, <hw.state!=ok>}) == 1`, ""}}},
				{title: "Not well", kind: stateTimeline, unit: plainUnit, width: 24, height: 8,
					queries: []query{most("by (<host.name>, <hw.id>, <hw.name>, <hw.state>)", `<hw.status>{`+drives+`, <hw.state!=ok>}`, name+" {{<hw.state>}}")}},
			}},
			{"Errors", []panel{
				graph("Errors so far", plainUnit, most("by (<host.name>, <hw.id>, <hw.name>, <error.type>)", last(`<hw.errors>{`+drives+`}`), name+" {{<error.type>}}")).wide(),
				graph("Errors of the last day", plainUnit, most("by (<host.name>, <hw.id>, <hw.name>, <error.type>)", `increase(<hw.errors>{`+drives+`}[1d])`, name+" {{<error.type>}}")).wide().
					saying("What grows is what tells a drive that is dying."),
				smart("Raw values").wide(),
			}},
			{"Wear and heat", []panel{
				graph("Temperature", celsius, most(by, last(`<hw.temperature>{`+onHosts+`, <hw.sensor_location=>}`), name),
					most(by, last(`<hw.temperature.limit>{`+onHosts+`, <hw.sensor_location=>}`), name+" limit")),
				one("Life that is left", percent, "hw.physical_disk.endurance_utilization"),
				one("Hours under power", seconds, "stallspan.physical_disk.power_on.time"),
				graph("Bytes of its life", bytesUnit, most("by (<host.name>, <hw.id>, <hw.name>, <disk.io.direction>)", last(`<stallspan.physical_disk.io>{`+onHosts+`}`), name+" {{<disk.io.direction>}}")).
					onceThereIs("stallspan.physical_disk.io"),
			}},
		},
	}
}
