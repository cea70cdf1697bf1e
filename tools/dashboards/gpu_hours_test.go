package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// anHour are the series of an hour: a training on GPU-1 and a notebook on GPU-2 of the machine a, and GPU-3 of the
// machine b, which no job holds. The disk sda of a has three times the operations in flight of sdb.
func anHour() []map[string]string {
	var all []map[string]string
	add := func(series string, each float64) {
		values := fmt.Sprintf("1000+%gx%d", each, 4*61)
		if each == 0 {
			values = fmt.Sprintf("1x%d", 4*61)
		}
		all = append(all, map[string]string{"series": series, "values": values})
	}
	const step = 15.0 // seconds
	gpu := func(host, id, job string, shares map[string]float64) {
		for cause, share := range shares {
			series := `stallspan_gpu_time_seconds_total{k8s_cluster_name="x", host_name=%q, hw_id=%q, stallspan_gpu_time_cause=%q%s}`
			add(fmt.Sprintf(series, host, id, cause, job), math.Max(step*share, 1e-9))
		}
		add(fmt.Sprintf(`stallspan_gpu_busy_time_seconds_total{k8s_cluster_name="x", host_name=%q, hw_id=%q, hw_model="H"}`, host,
			id), math.Max(step*shares["busy"], 1e-9))
	}
	train := `, k8s_namespace_name="research", k8s_pod_name="train-0", process_owner="ann", stallspan_job_name="train-0"`
	gpu("a", "GPU-1", train, map[string]float64{"busy": 0.6, "storage": 0.3, "cpu": 0.06, "other": 0.04})
	gpu("a", "GPU-2", `, process_owner="bob", stallspan_job_name="notebook"`, map[string]float64{"busy": 0, "storage": 0,
		"cpu": 0, "other": 1})
	gpu("b", "GPU-3", "", map[string]float64{"busy": 0, "other": 0, "idle": 1})
	for disk, queue := range map[string]float64{"sda": 3, "sdb": 1, "dm-0": 4} {
		add(fmt.Sprintf(`system_disk_weighted_io_time_seconds_total{host_name="a", system_device_name=%q}`, disk), step*queue)
		if disk != "dm-0" { // it is on the others
			add(fmt.Sprintf(`stallspan_disk_throughput_ceiling_bytes_per_second{host_name="a", system_device_name=%q, `+
				`disk_io_direction="read"}`, disk), 0)
		}
	}
	return all
}

// Each query of the dashboard returns data, and sums of hours and costs are right. promtool evaluates them with
// Prometheus' own engine, and the rules.
func TestGPUHours(t *testing.T) {
	r := registered(t)
	var b drawnBoard
	if err := json.Unmarshal(written(t, r)["docs/grafana/gpu-hours.json"], &b); err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{ // of what a panel shows for this hour, at a price of 2
		"GPUs by what they did": 3, "GPU hours of this range, by cause": 3, "By machine and cause": 3,
		"By cluster and cause": 3, "By namespace and cause": 3, "By user and cause": 3, "By model of the GPU and cause": 3,
		"GPUs lost to storage, by disk": 0.3, "Cost of this range, by cause": 6,
		"Cost of what jobs lost, by namespace and user": 2.8, "Jobs that lost most": 2.8,
		"Cost of GPUs that no job held, by machine": 2, "Badput of this range, in hours": 2.4,
		"GPUs that were held and idle for the last hour": 1, "GPUs by job": 2, "Most GPU hours": 2,
		"Most hours lost to storage": 0.3, "Most hours lost to the CPU": 0.06, "Most hours lost otherwise": 1.04,
	}
	filled := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$price", "2", "$host", ".*", "$gpu", ".*")
	type sample struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	}
	type query struct {
		Expr    string   `yaml:"expr"`
		At      string   `yaml:"eval_time"`
		Samples []sample `yaml:"exp_samples"`
	}
	var queries []query
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			expr, _ := target["expr"].(string)
			want, known := sums[p.Title]
			switch id := target["refId"]; {
			case p.Title == "Scheduling and runtime goodput, at the most" && id == "A":
				want = 0.667
			case p.Title == "Scheduling and runtime goodput, at the most":
				want = 0.3
			case !known:
				t.Errorf("panel %q: no sum is known here", p.Title)
			}
			queries = append(queries, query{fmt.Sprintf("round(sum(%s), 0.001)", filled.Replace(expr)), "1h",
				[]sample{{"{}", want}}})
		}
	}
	queries = append(queries, query{`round(` + diskLost + `{system_device_name="sda"}, 0.001)`, "1h",
		[]sample{{`{host_name="a", system_device_name="sda"}`, 0.225}}})
	rules, err := filepath.Abs(filepath.Join(root, "docs/prometheus/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{
		"rule_files": []string{rules}, "evaluation_interval": "15s",
		"tests": []any{map[string]any{"interval": "15s", "input_series": anHour(), "promql_expr_test": queries}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hour.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", path)
}
