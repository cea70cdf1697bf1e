// The data that package page embeds, and docs/report.md describes.

export type Part = "busy" | "storage" | "cpu" | "ready" | "other";

export interface Disk {
  name: string;
  read_bytes: number;
  read_operations: number;
  read_await_s?: number;
  write_bytes: number;
  write_operations: number;
  write_await_s?: number;
  queue_depth?: number;
  read_ceiling?: number;
  write_ceiling?: number;
}

export interface WhatIf {
  no_storage?: number;
  no_storage_low?: number;
  no_storage_high?: number;
  twice_the_workers?: number;
  two_workers_at_most?: number;
  gpu_twice_as_fast?: number;
}

export interface Report {
  id?: string;
  kind: string;
  scope?: string;
  within?: string;
  unfinished?: boolean;
  start: string;
  duration_s: number;
  gpu?: { ids: string[]; busy_s: number; busy_ratio: number };
  process?: { on_cpu_s: number };
  stall?: {
    storage_s: number;
    cpu_s?: number;
    ready_s?: number;
    other_s: number;
    other_reasons?: { kind: string; name: string; time_s: number }[];
  };
  evidence?: string;
  verdict: string;
  finding: string;
  remedy: string;
  findings?: { kind: string; text: string; remedy?: string }[];
  slow: boolean;
  slowness_reason?: string;
  baseline?: { median_s: number; p95_s: number; count: number };
  speedup_bound?: number;
  what_if?: WhatIf;
  disks?: Disk[];
  storage_stalls?: { start: string; duration_s: number }[];
  uncertainty_ratio?: number;
}

export interface Window {
  running?: boolean;
  start_s: number;
  label: string;
  report: Report;
}

export interface Line {
  name: string;
  part?: Part;
  device: number;
  dashed?: boolean;
  values: (number | null)[];
}

export interface Panel {
  title: string;
  unit: string;
  max?: number;
  stacked?: boolean;
  log?: boolean;
  lines: Line[];
  marks?: { name: string; device: number; value: number }[];
  note?: string;
}

export interface Data {
  version: number;
  title: string;
  facts?: { name: string; value: string }[];
  origin: string;
  duration_s: number;
  run?: Window;
  windows: Window[];
  problems?: string[];
  curves: { start_s: number; step_s: number; panels: Panel[] | null };
}

/** share is one part of a ledger: its time, and its share of all. */
export interface Share {
  part: Part;
  name: string;
  seconds: number;
  ratio: number;
  percent: number; // in whole numbers, which add up to 100
}

/** wholePercents are shares of a time. They add up: what rounding leaves goes to those with the largest remainders. */
function wholePercents(parts: number[], total: number): number[] {
  const exact = parts.map((p) => (100 * p) / total);
  const whole = exact.map(Math.floor);
  const left = Math.round(exact.reduce((a, b) => a + b, 0)) - whole.reduce((a, b) => a + b, 0);
  const rest = (i: number): number => (exact[i] ?? 0) - (whole[i] ?? 0);
  const order = parts.map((_, i) => i).sort((a, b) => rest(b) - rest(a));
  return whole.map((n, i) => (order.indexOf(i) < left ? n + 1 : n));
}

/** ledger returns the parts of a report's time, or none if it is not known. */
export function ledger(r: Report): Share[] {
  const s = r.stall;
  if (!s) return [];
  const total = r.duration_s * Math.max(1, r.gpu?.ids.length ?? 1);
  if (total <= 0) return [];
  const parts: [Part, string, number][] = [];
  if (r.gpu) parts.push(["busy", "GPU busy", r.gpu.busy_s]);
  else if (r.process) parts.push(["busy", "on CPU", r.process.on_cpu_s]);
  parts.push(["storage", "storage", s.storage_s]);
  if (r.gpu) parts.push(["cpu", "CPU", s.cpu_s ?? 0]);
  if (s.ready_s) parts.push(["ready", "no core", s.ready_s]);
  parts.push(["other", "other", s.other_s]);
  const rounded = wholePercents(parts.map((p) => p[2]), total);
  return parts.map(([part, name, seconds], i) => ({ part, name, seconds, ratio: seconds / total, percent: rounded[i] ?? 0 }));
}

/** end is the end of a window on the time axis, in seconds. */
export function end(w: Window): number {
  return w.start_s + w.report.duration_s;
}

/** PageEvent is an event of the machine, or of a window. */
export interface PageEvent {
  id: string;
  at_s: number;
  name: string;
  severity: string;
  resolved?: boolean;
  subject?: string;
  text: string;
}

/** Live is the data of a page that goes on. */
export interface Live extends Data {
  events?: PageEvent[] | null; // by time; null if the server has none
  now_s: number;
  span_s: number;
  oldest_s: number;
  latest_s: number;
  last?: { label: string; end_s: number }; // the newest window before, where none ended in this time
}

/** Update is what is new since the last one. */
export interface Update {
  now_s: number;
  curves: { start_s: number; step_s: number; panels: Panel[] | null };
  windows: Window[];
  events?: PageEvent[] | null;
}
