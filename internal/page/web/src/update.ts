// What is new is added to the data of a live page. Its size stays the same.

import { type Line, type Live, type PageEvent, type Panel, type Update, type Window, end } from "./data";

/** maxWindows is how many windows are kept. */
const maxWindows = 1000;

/** maxEvents is how many events are kept. */
const maxEvents = 500;

/** apply adds an update. It returns false if something between the two is missing. */
export function apply(data: Live, update: Update): boolean {
  const step = data.curves.step_s;
  if (Math.abs(update.curves.start_s - data.now_s) > step / 2) return false;
  const known = points(data);
  const added = Math.round((update.now_s - data.now_s) / step);
  const panels = (data.curves.panels ??= []);
  for (const p of update.curves.panels ?? []) {
    let panel = panels.find((q) => q.title === p.title);
    if (!panel) {
      if (!p.lines.some(says)) continue;
      panel = { ...p, lines: [] };
      panels.push(panel);
    }
    p.lines.forEach((line, i) => {
      let mine = panel.lines.find((l) => l.name === line.name);
      if (!mine) {
        if (!says(line)) return;
        mine = { ...line, values: new Array<number | null>(known).fill(null) };
        const above = panel.lines.findIndex((l) => p.lines.slice(i + 1).some((m) => m.name === l.name));
        panel.lines.splice(above < 0 ? panel.lines.length : above, 0, mine); // a stack keeps its order
      }
      mine.values.push(...line.values);
    });
    panel.marks = merge(panel, p);
  }
  const surplus = Math.max(0, known + added - Math.round(data.span_s / step));
  for (const panel of panels) {
    for (const line of panel.lines) {
      while (line.values.length < known + added) line.values.push(null);
      line.values.splice(0, surplus);
    }
  }
  data.curves.start_s += surplus * step;
  data.now_s = update.now_s;
  data.windows = windows(data, update.windows);
  if (data.events) data.events = events(data, data.events, update.events ?? []);
  return true;
}

const points = (data: Live): number => Math.round((data.now_s - data.curves.start_s) / data.curves.step_s);

/** says reports whether a line shows anything. */
const says = (line: Line): boolean => line.values.some((v) => v !== null && v > 0);

/** merge keeps the highest level of each name. */
function merge(a: Panel, b: Panel): { name: string; device: number; value: number }[] {
  const marks = [...(a.marks ?? [])];
  for (const m of b.marks ?? []) {
    const mine = marks.find((k) => k.name === m.name);
    if (!mine) marks.push(m);
    else mine.value = Math.max(mine.value, m.value);
  }
  return marks;
}

/** events adds events by time, and drops those from before the curves begin. */
function events(data: Live, known: PageEvent[], fresh: PageEvent[]): PageEvent[] {
  const all = [...known, ...fresh].filter((e) => e.at_s >= data.curves.start_s);
  return all.sort((a, b) => a.at_s - b.at_s).slice(-maxEvents);
}

/** windows replaces windows by their id, and drops those that ended before the curves begin. */
function windows(data: Live, fresh: Window[]): Window[] {
  const place = new Map(data.windows.map((w, i) => [w.report.id, i]));
  const all = [...data.windows];
  for (const w of fresh) {
    const i = place.get(w.report.id);
    if (i === undefined) all.push(w);
    else all[i] = w;
  }
  return all.filter((w) => w.running || end(w) >= data.curves.start_s).slice(-maxWindows);
}
