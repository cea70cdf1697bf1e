package main

// diskHealth shows SMART data. A panel appears once its names are registered.
func diskHealth() board {
	const by = "by (<host.name>, <hw.id>, <hw.name>)"
	const name = "{{<host.name>}} {{<hw.name>}}"
	const drives = onHosts + `, <hw.type=physical_disk>`
	// Drives are read every ten minutes. Prometheus drops a point after five.
	last := func(selector string) string { return `last_over_time(` + selector + `[20m])` }
	one := func(title, unit, metric string, more ...string) panel {
		return graph(title, unit, highest(by, last(`<`+metric+`>{`+onHosts+`}`), name)).ifRegistered(append(more, metric)...)
	}
	smart := func(title string) panel {
		return graph(title, plainUnit, highest("by (<host.name>, <hw.id>, <hw.name>, <hw.physical_disk.smart_attribute>)",
			last(`<hw.physical_disk.smart>{`+onHosts+`}`), name+" {{<hw.physical_disk.smart_attribute>}}")).
			ifRegistered("hw.physical_disk.smart", "hw.physical_disk.smart_attribute")
	}
	return board{
		file: "disk-health.json", uid: "disk-health", title: "Stallspan: disk health",
		says:      "What the drives report about themselves (SMART).",
		variables: []variable{hostVariable},
		needs:     []string{"hw.type=physical_disk", "hw.name"},
		rows: []row{
			{"State", []panel{
				{title: "Drives that are not well", kind: table, width: 24, height: 8, needs: []string{"hw.model"},
					queries: []query{{`max by (<host.name>, <hw.name>, <hw.model>, <hw.id>, <hw.state>) (<hw.status>{` + drives +
						`, <hw.state!=ok>}) == 1`, ""}}},
				{title: "Not well", kind: stateTimeline, unit: plainUnit, width: 24, height: 8,
					queries: []query{highest("by (<host.name>, <hw.id>, <hw.name>, <hw.state>)",
						`<hw.status>{`+drives+`, <hw.state!=ok>}`, name+" {{<hw.state>}}")}},
			}},
			{"Errors", []panel{
				graph("Errors so far", plainUnit, highest("by (<host.name>, <hw.id>, <hw.name>, <error.type>)",
					last(`<hw.errors>{`+drives+`}`), name+" {{<error.type>}}")).wide(),
				graph("Errors of the last day", plainUnit,
					highest("by (<host.name>, <hw.id>, <hw.name>, <error.type>)", `increase(<hw.errors>{`+drives+`}[1d])`,
						name+" {{<error.type>}}")).wide().
					saying("A growing value indicates a failing drive."),
				smart("Raw values").wide(),
			}},
			{"Wear and heat", []panel{
				graph("Temperature", celsius, highest(by, last(`<hw.temperature>{`+onHosts+`, <hw.sensor_location=>}`), name),
					highest(by, last(`<hw.temperature.limit>{`+onHosts+`, <hw.sensor_location=>}`), name+" limit")),
				one("Life that is left", percent, "hw.physical_disk.endurance_utilization"),
				one("Hours under power", seconds, "stallspan.physical_disk.power_on.time"),
				graph("Bytes of its life", bytesUnit, highest("by (<host.name>, <hw.id>, <hw.name>, <disk.io.direction>)",
					last(`<stallspan.physical_disk.io>{`+onHosts+`}`), name+" {{<disk.io.direction>}}")).
					ifRegistered("stallspan.physical_disk.io"),
			}},
		},
	}
}
