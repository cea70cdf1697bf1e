package main

import "fmt"

// board describes a dashboard. All queries may have placeholders.
type board struct {
	file, uid, title, says string
	variables              []variable
	marks                  []mark
	rows                   []row
	needs                  []string // left out until all of these are registered (registry.has)
}

type row struct {
	title  string
	panels []panel
}

// Kinds of panels, with Grafana's names.
const (
	timeseries    = "timeseries"
	table         = "table"
	stateTimeline = "state-timeline"
)

// Units, with Grafana's names.
const (
	percent   = "percentunit" // of 0 to 1, and the axis shows all of it
	seconds   = "s"
	bytesUnit = "bytes"
	perSecond = "Bps"
	operation = "ops"
	celsius   = "celsius"
	watt      = "watt"
	hertz     = "hertz"
	plainUnit = "short"
)

type panel struct {
	title, says, kind, unit string
	width, height           int
	queries                 []query
	trace                   bool // queries are TraceQL, to Tempo
	stacked                 bool
	exemplars               bool // query the exemplars of a histogram
	needs                   []string
}

type query struct{ expr, legend string }

// mark is an annotation: a line at each moment at which a query is not 0. Tempo's data source supports none
// (its plugin says so), so they come from Prometheus.
type mark struct{ name, expr, title, color string }

// variable is a dashboard variable: the values of a label on a metric, or a text that the reader types.
type variable struct{ name, title, metric, key, matchers, text string }

func (r *registry) annotations(marks []mark) (all []jsonObject, err error) {
	all = []jsonObject{}
	for _, m := range marks {
		expr, err := r.expand(m.expr)
		if err != nil {
			return nil, err
		}
		title, err := r.expand(m.title)
		if err != nil {
			return nil, err
		}
		all = append(all, jsonObject{
			"name": m.name, "datasource": prometheus, "enable": true, "hide": false, "iconColor": m.color,
			"expr": expr, "step": "15s", "titleFormat": title, "textFormat": "", "tagKeys": "", "useValueForTime": false,
		})
	}
	return all, nil
}

func (r *registry) variables(chosen []variable) (all []jsonObject, err error) {
	for _, name := range []string{prometheus.Type, tempo.Type} {
		all = append(all, jsonObject{"type": "datasource", "name": name,
			"label": map[string]string{"prometheus": "Prometheus",
				"tempo": "Tempo"}[name], "query": name, "refresh": 1, "hide": 0})
	}
	for _, v := range chosen {
		if v.text != "" {
			all = append(all, jsonObject{"type": "textbox", "name": v.name, "label": v.title, "query": v.text, "hide": 0,
				"current": jsonObject{"selected": true, "text": v.text, "value": v.text},
				"options": []jsonObject{{"selected": true, "text": v.text, "value": v.text}}})
			continue
		}
		text, err := r.expand("label_values(<" + v.metric + ">{" + v.matchers + "}, <" + v.key + ">)")
		if err != nil {
			return nil, err
		}
		all = append(all, jsonObject{
			"type": "query", "name": v.name, "label": v.title, "datasource": prometheus, "refresh": 2, "sort": 1, "hide": 0,
			"definition": text, "query": jsonObject{"qryType": 1, "query": text, "refId": "variable"},
			"multi": true, "includeAll": true, "allValue": ".*", "current": jsonObject{"selected": true, "text": []string{"All"},
				"value": []string{"$__all"}},
		})
	}
	return all, nil
}

// Variables, and the matchers by which queries use them.
const (
	onHosts = `<host.name=~$host>`
	onDisks = onHosts + `, <system.device.name=~$disk>`
	onGPUs  = onHosts + `, <hw.id=~$gpu>`
)

var (
	hostVariable  = variable{"host", "Machine", "stallspan.disk.utilization", "host.name", "", ""}
	gpuVariable   = variable{"gpu", "GPU", "hw.status", "hw.id", onHosts + ", <hw.type=gpu>", ""}
	diskVariable  = variable{"disk", "Disk", "stallspan.disk.queue.depth", "system.device.name", onHosts, ""}
	priceVariable = variable{name: "price", title: "Price of a GPU hour", text: "1"} // no price is right for all
)

// graph is a panel of lines over half of the width.
func graph(title, unit string, queries ...query) panel {
	return panel{title: title, kind: timeseries, unit: unit, width: 12, height: 8, queries: queries}
}

func (p panel) saying(text string) panel { p.says = text; return p }

func (p panel) wide() panel { p.width = 24; return p }

func (p panel) ifRegistered(needs ...string) panel { p.needs = needs; return p }

// windowMarks mark the ends of epochs and loads.
func windowMarks() []mark {
	ended := func(histogram, name, slow string) string {
		counted := histogram + `{` + onHosts + `, <stallspan.slow` + slow + `true>}`
		return fmt.Sprintf(`sum by (<host.name>, %[1]s, <stallspan.verdict>, <stallspan.window.source>) (increase(%[2]s[1m]) > 0 or (%[2]s unless %[2]s offset 1m))`, name, counted)
	}
	const epochs, loads = "<stallspan.training.epoch.duration_count>", "<stallspan.model.load.duration_count>"
	const run, model = "<stallspan.training.run.name>", "<stallspan.model.name>"
	const source = "{{<stallspan.window.source>}}"
	return []mark{
		{"Slow epochs", ended(epochs, run, "="), "slow " + source + " epoch {{" + run +
			"}}: {{<stallspan.verdict>}}, {{<host.name>}}", "red"},
		{"Slow loads", ended(loads, model, "="), "slow " + source + " load {{" + model +
			"}}: {{<stallspan.verdict>}}, {{<host.name>}}", "orange"},
		{"Epochs", ended(epochs, run, "!="), source + " epoch {{" + run +
			"}}: {{<stallspan.verdict>}}, {{<host.name>}}", "blue"},
		{"Loads", ended(loads, model, "!="), source + " load {{" + model +
			"}}: {{<stallspan.verdict>}}, {{<host.name>}}", "purple"},
	}
}
