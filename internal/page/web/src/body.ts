// What a report and the page of a machine have in common: the timeline, the detail of a window, and the table.

import { curves } from "./curves";
import { type Data, end } from "./data";
import { detail } from "./detail";
import { el } from "./dom";
import { lanes } from "./lanes";
import type { View } from "./view";
import { windowTable } from "./windows";

/** Parts are what only the page of a machine has: marks above the lanes, a list of events, and one of jobs. */
interface Parts {
  marks: HTMLElement;
  list: HTMLElement;
  jobs: HTMLElement;
}

/** body is the page below its head. It draws again when the view tells that the data has changed. */
export function body(data: Data, view: View, live?: Parts): HTMLElement[] {
  keys(data, view);
  return [
    el(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      el("h2", {}, "Timeline"),
      el(
        "p",
        { class: "muted help" },
        "Drag in a curve to zoom, double-click to see all. Keys: + - 0 zoom, arrows move, n p s select the next, previous, next slow window.",
      ),
      ...(live ? [live.marks] : []),
      lanes(data, view),
      curves(data, view),
    ),
    detail(data, view),
    ...(live ? [live.jobs, live.list] : []),
    windowTable(data, view),
  ];
}

function keys(data: Data, view: View): void {
  const step = (by: number, slowOnly: boolean): void => {
    const order = data.windows.map((_, i) => i).sort((a, b) => (data.windows[a]?.start_s ?? 0) - (data.windows[b]?.start_s ?? 0));
    const list = slowOnly ? order.filter((i) => data.windows[i]?.report.slow) : order;
    if (list.length === 0) return;
    const now = view.selected === null ? -1 : list.indexOf(view.selected);
    const next = list[Math.max(0, Math.min(list.length - 1, now < 0 ? 0 : now + by))];
    const w = next === undefined ? undefined : data.windows[next];
    if (next === undefined || !w) return;
    if (w.start_s > view.range.max || end(w) < view.range.min) {
      const half = (view.range.max - view.range.min) / 2;
      const middle = (w.start_s + end(w)) / 2;
      view.show(middle - half, middle + half);
    }
    view.select(next);
  };
  const actions: Record<string, () => void> = {
    "+": () => view.zoom(0.5),
    "=": () => view.zoom(0.5),
    "-": () => view.zoom(2),
    "0": () => view.show(view.full.min, view.full.max),
    ArrowLeft: () => view.pan(-0.2),
    ArrowRight: () => view.pan(0.2),
    n: () => step(1, false),
    p: () => step(-1, false),
    s: () => step(1, true),
    Escape: () => view.select(null),
  };
  document.addEventListener("keydown", (e) => {
    const target = e.target;
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
    const act = actions[e.key];
    if (act) {
      e.preventDefault();
      act();
    }
  });
}
