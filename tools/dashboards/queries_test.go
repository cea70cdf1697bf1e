package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// words of PromQL, and of label_replace in our rules.
var words = regexp.MustCompile(`^(and|or|unless|on|by|bool|offset|group_left|` +
	`sum|min|max|topk|avg|count|group|rate|increase|round|clamp_max|label_replace|histogram_quantile|(last|max|min|avg)_over_time|label_values)$`)

var (
	quoted   = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]|offset \w+|\$price`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\{([^}]*)\}`)
	matched  = regexp.MustCompile(`([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)`)
	grouped  = regexp.MustCompile(`\b(?:by|on|group_left) \(([^)]*)\)`)
)

// checker holds every name that a query may have.
type checker struct {
	series map[string]map[string]bool // with its labels, of the registry's and the recorded
	added  map[string]bool            // labels that rules add
}

func newChecker(t *testing.T, groups []group) *checker {
	c := &checker{registered(t).known(t), map[string]bool{"by": true, "of": true, "kind": true, "part": true}}
	for _, g := range groups {
		for _, one := range g.Rules {
			if one.Record != "" && c.series[one.Record] == nil {
				c.series[one.Record] = map[string]bool{}
			}
		}
	}
	for _, g := range groups { // the remaining labels of its series
		for _, one := range g.Rules {
			if one.Record == "" {
				continue
			}
			for _, key := range c.left(one.Expr) {
				c.series[one.Record][key] = true
			}
			for key := range one.Labels {
				c.series[one.Record][key] = true
			}
		}
	}
	return c
}

// left returns the labels that the series of a query may have: those that it groups by, or those of its series.
func (c *checker) left(expr string) (all []string) {
	bare := quoted.ReplaceAllString(expr, `""`)
	for _, list := range grouped.FindAllStringSubmatch(bare, -1) {
		all = append(all, word.FindAllString(list[1], -1)...)
	}
	for _, name := range word.FindAllString(bare, -1) {
		if strings.Contains(name, ":") {
			for key := range c.series[name] {
				all = append(all, key)
			}
		}
	}
	return all
}

// wrong returns the unregistered name in a PromQL query, "" for none.
func (c *checker) wrong(expr string) string {
	bare := ranges.ReplaceAllString(quoted.ReplaceAllString(expr, `""`), "")
	present := map[string]bool{}
	var named []string
	for _, name := range word.FindAllString(selector.ReplaceAllString(grouped.ReplaceAllString(bare, ""), "$1"), -1) {
		if words.MatchString(name) {
			continue
		}
		labels := c.series[name]
		if labels == nil {
			named = append(named, name)
		}
		for key := range labels {
			present[key] = present[key] || labels[key]
		}
	}
	for _, name := range named { // label_values(series, label)
		if !strings.HasPrefix(expr, "label_values(") || !present[name] {
			return name
		}
	}
	for _, s := range selector.FindAllStringSubmatch(bare, -1) {
		for _, m := range matched.FindAllStringSubmatch(s[2], -1) {
			if !c.series[s[1]][m[1]] {
				return s[1] + "{" + m[1] + "}"
			}
		}
	}
	for _, list := range grouped.FindAllStringSubmatch(bare, -1) {
		for _, key := range word.FindAllString(list[1], -1) {
			if !present[key] && !c.added[key] {
				return "by (" + key + ")"
			}
		}
	}
	return ""
}

func TestCheckerFindsWrongNames(t *testing.T) {
	groups, err := registered(t).groups()
	if err != nil {
		t.Fatal(err)
	}
	c := newChecker(t, groups)
	for expr, want := range map[string]string{
		`max by (host_name) (rate(stallspan_gpu_busy_time_seconds_total{hw_id="x y"}[5m])) or stallspan:disk_stuck > 0`: "",
		`rate(stallspan_gpu_busy_time_total[5m])`:                     "stallspan_gpu_busy_time_total",
		`hw_status{hw_state="ok", hw_stat="ok"}`:                      "hw_status{hw_stat}",
		`system_disk_io_time_seconds_total{disk_io_direction="read"}`: "system_disk_io_time_seconds_total{disk_io_direction}",
		`sum by (hw_id) (system_disk_io_bytes_total)`:                 "by (hw_id)",
		`stallspan:gpu_bussy:ratio5m`:                                 "stallspan:gpu_bussy:ratio5m",
		`stallspan:gpu_busy:ratio5m{system_device_name="sda"}`:        "stallspan:gpu_busy:ratio5m{system_device_name}",
		`stallspan_model_load_duration_seconds`:                       "stallspan_model_load_duration_seconds",
		`label_values(hw_status{host_name="$host"}, hw_id)`:           "",
		`label_values(hw_status, disk_io_direction)`:                  "disk_io_direction",
	} {
		if got := c.wrong(expr); got != want {
			t.Errorf("%s: %q, not %q", expr, got, want)
		}
	}
}

func TestEveryNameInTheRulesIsRegistered(t *testing.T) {
	r := registered(t)
	var file struct{ Groups []group }
	if err := yaml.Unmarshal(written(t, r)["docs/prometheus/rules.yaml"], &file); err != nil {
		t.Fatal(err)
	}
	c := newChecker(t, file.Groups)
	inText := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, g := range file.Groups {
		for _, one := range g.Rules {
			if bad := c.wrong(one.Expr); bad != "" {
				t.Errorf("%s%s: %s is no name of the registry's: %s", one.Record, one.Alert, bad, one.Expr)
			}
			if one.Notes == nil {
				continue
			}
			left := c.left(one.Expr)
			if strings.Contains(one.Expr, `"part"`) {
				left = append(left, "part")
			}
			for _, found := range inText.FindAllStringSubmatch(one.Notes.Summary+one.Notes.Description, -1) {
				if !slices.Contains(left, found[1]) {
					t.Errorf("%s uses the label %s, which its series do not have", one.Alert, found[1])
				}
			}
		}
	}
}

// attributeInTraceQL is one of a span or of its resource.
var attributeInTraceQL = regexp.MustCompile(`\b(span|resource)\.([a-z][a-z0-9_.]*)`)

func TestEveryNameInTheDashboardsIsRegistered(t *testing.T) {
	r := registered(t)
	groups, err := r.groups()
	if err != nil {
		t.Fatal(err)
	}
	c := newChecker(t, groups)
	promQL, traceQL := 0, 0
	for path, text := range written(t, r) {
		if !strings.HasSuffix(path, ".json") {
			continue
		}
		var board any
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("dashboard %s: %v", path, err)
		}
		each(board, func(o map[string]any) {
			if expr, ok := o["expr"].(string); ok {
				promQL++
				if bad := c.wrong(expr); bad != "" {
					t.Errorf("%s: %s is no name of the registry's: %s", path, bad, expr)
				}
			}
			if expr, ok := o["definition"].(string); ok {
				if bad := c.wrong(expr); bad != "" {
					t.Errorf("%s: %s is no name of the registry's: %s", path, bad, expr)
				}
			}
			if expr, ok := o["query"].(string); ok && o["queryType"] == "traceql" {
				traceQL++
				for _, a := range attributeInTraceQL.FindAllStringSubmatch(expr, -1) {
					if known := map[string]map[string]bool{"span": r.spans, "resource": r.resource}[a[1]]; !known[a[2]] {
						t.Errorf("%s: no %s has %s: %s", path, a[1], a[2], expr)
					}
				}
			}
		})
	}
	if promQL < 40 || traceQL < 2 {
		t.Errorf("only %d and %d queries were found", promQL, traceQL)
	}
}

// each calls yield for every object within v.
func each(v any, yield func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		yield(v)
		for _, inner := range v {
			each(inner, yield)
		}
	case []any:
		for _, inner := range v {
			each(inner, yield)
		}
	}
}
