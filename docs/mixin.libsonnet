// A Prometheus mixin: the rules and the dashboards, for those who install them with Jsonnet.
//
//   local stallspan = import 'github.com/stallspan/stallspan/docs/mixin.libsonnet';
local groups = std.parseYaml(importstr 'prometheus/rules.yaml').groups;
local rulesWith(kind) = [
  group { rules: [rule for rule in group.rules if std.objectHas(rule, kind)] }
  for group in groups
  if std.length([rule for rule in group.rules if std.objectHas(rule, kind)]) > 0
];

{
  prometheusAlerts+:: { groups+: rulesWith('alert') },
  prometheusRules+:: { groups+: rulesWith('record') },
  grafanaDashboards+:: {
    'disk-health.json': import 'grafana/disk-health.json',
    'gpu-disk.json': import 'grafana/gpu-disk.json',
    'gpu-hours.json': import 'grafana/gpu-hours.json',
    'gpu.json': import 'grafana/gpu.json',
    'slow-windows.json': import 'grafana/slow-windows.json',
  },
}
