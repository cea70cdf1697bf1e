// The curves below the lanes, one uPlot for each panel. They share the time axis and the cursor.

import uPlot from "uplot";
import type { Data, Panel } from "./data";
import { colour, el, onTheme } from "./dom";
import { value } from "./format";
import { left, right, wheel } from "./lanes";
import type { View } from "./view";

const height = 110;
const axisHeight = 26;
const open = 6; // panels that are shown at first

/** middles are the times of the points: an interval is drawn at its middle. */
function middles(data: Data): Float64Array {
  const n = data.curves.panels?.[0]?.lines[0]?.values.length ?? 0;
  return Float64Array.from({ length: n }, (_, i) => data.curves.start_s + (i + 0.5) * data.curves.step_s);
}

/** shape is what has to be drawn anew if it changes: the panels, and the lines in each. */
const shape = (data: Data): string => (data.curves.panels ?? []).map((p) => [p.title, ...p.lines.map((l) => l.name)].join("\n")).join("\n\n");

export function curves(data: Data, view: View): HTMLElement {
  const box = el("div", { class: "curves" });
  let drawn = "";
  let of: Panel[] | null = null;
  let plots: Plot[] = [];
  let unfolded = false;
  const build = (): void => {
    for (const p of plots) p.destroy();
    plots = [];
    drawn = shape(data);
    of = data.curves.panels;
    const panels = of ?? [];
    const times = middles(data);
    const add = (p: Panel): HTMLElement => {
      const made = plot(p, times, data, view);
      plots.push(made);
      return made.element;
    };
    box.replaceChildren(...panels.slice(0, open).map(add));
    if (panels.length <= open) return;
    const more = el("details", { class: "more" }, el("summary", {}, "More curves"));
    let filled = false;
    const fill = (): void => {
      unfolded = more.open;
      if (filled) return;
      filled = true;
      more.append(...panels.slice(open).map(add));
    };
    more.addEventListener("toggle", fill);
    fillAll = fill;
    box.append(more);
    if (unfolded) more.open = true;
  };
  let fillAll = (): void => {};
  addEventListener("beforeprint", () => fillAll());
  build();
  view.onRange(() => plots.forEach((p) => p.redraw()));
  view.onCursor(() => plots.forEach((p) => p.tell()));
  onTheme(() => plots.forEach((p) => p.redraw()));
  view.onData(() => {
    if (data.curves.panels !== of || shape(data) !== drawn) build();
    else {
      const times = middles(data);
      plots.forEach((p) => p.update(times));
    }
  });
  return box;
}

/** Plot is one panel on the page. */
interface Plot {
  element: HTMLElement;
  redraw: () => void;
  tell: () => void;
  update: (times: Float64Array) => void;
  destroy: () => void;
}

function plot(panel: Panel, at0: Float64Array, data: Data, view: View): Plot {
  let times = at0;
  const target = el("div", { class: "plot" });
  const readout = el("p", { class: "readout" });
  const figure = el("figure", {}, el("figcaption", {}, panel.title), readout, target);
  const nothing = el("p", { class: "note", hidden: "" }, "Nothing is known of this time.");
  figure.append(nothing);
  if (panel.note) figure.append(el("p", { class: "note" }, panel.note));

  // A stacked line is drawn as the sum of itself and those below, the highest first. One that is not known adds nothing.
  const order = panel.lines.map((_, i) => i);
  if (panel.stacked) order.reverse();
  const drawnData = (): uPlot.AlignedData => {
    const sums = panel.lines.map((l) => l.values);
    if (panel.stacked) {
      for (let i = 1; i < sums.length; i++) {
        const below = sums[i - 1] ?? [];
        sums[i] = (sums[i] ?? []).map((v, k) => (v === null && below[k] == null ? null : (v ?? 0) + (below[k] ?? 0)));
      }
    }
    return [times, ...order.map((i) => sums[i] ?? [])] as unknown as uPlot.AlignedData;
  };
  const paint = (i: number): string => {
    const part = panel.lines[i]?.part;
    return part ? colour(part) : lineColour(panel.lines[i]?.device ?? 0);
  };
  const series: uPlot.Series[] = order.map((i) => {
    const line = panel.lines[i];
    return {
      label: line?.name,
      stroke: () => paint(i),
      fill: panel.stacked ? () => paint(i) : undefined,
      width: panel.stacked ? 0 : 1.5,
      dash: line?.dashed ? [5, 4] : undefined,
      points: { show: false },
      spanGaps: false,
    };
  });
  const top = (): number => Math.max(0, ...(panel.marks ?? []).map((m) => m.value));
  const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false } };
  const u = new uPlot(
    {
      width: 600,
      height: height + axisHeight,
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, y: false, points: { show: !panel.stacked } },
      scales: {
        x: { time: false, range: () => [view.range.min, view.range.max] },
        y: panel.log
          ? { distr: 3, range: (_, min, max) => (max > 0 ? [10 ** Math.floor(Math.log10(min)), 10 ** Math.ceil(Math.log10(max))] : [1e-4, 1]) }
          : { range: (_, __, max) => [0, panel.max ?? (Math.max(max, top()) > 0 ? Math.max(max, top()) * 1.1 : 1)] },
      },
      axes: [
        { ...axis, size: axisHeight, space: view.tickSpace, incrs: seconds, values: (_, at) => at.map((t) => view.time(t, (at[1] ?? t + 1) - (at[0] ?? t))) },
        {
          ...axis,
          size: left,
          space: 28,
          ...(panel.unit.startsWith("B") ? { incrs: binary } : {}),
          ...(panel.log ? { filter: decades } : {}),
          ...(panel.log ? { grid: { ...axis.grid, filter: decades } } : {}),
          values: (_, at) => at.map((v) => (v === null ? null : value(v, panel.unit))),
        },
      ],
      series: [{}, ...series],
      padding: [6, right, 0, 0],
      hooks: {
        draw: [(p) => drawMarks(p, panel)],
        setSelect: [
          (p) => {
            if (p.select.width > 3) {
              view.show(p.posToVal(p.select.left, "x"), p.posToVal(p.select.left + p.select.width, "x"));
            }
            p.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    },
    drawnData(),
    target,
  );

  u.over.addEventListener("pointermove", (e) => {
    if (e.isTrusted || e.bubbles) view.point(u.posToVal(e.clientX - u.over.getBoundingClientRect().left, "x"));
  });
  u.over.addEventListener("pointerleave", () => view.point(null));
  u.over.addEventListener("dblclick", () => view.show(view.full.min, view.full.max));
  wheel(u.over, view, (px) => u.posToVal(px, "x"));

  /** tell shows the values at the cursor, or the names alone. */
  const tell = (): void => {
    const at = view.cursor;
    const index = at === null ? null : nearest(times, at);
    const inside = at !== null && at >= view.range.min && at <= view.range.max;
    u.setCursor({ left: inside && at !== null ? u.valToPos(at, "x") : -10, top: inside ? 0 : -10 }, false);
    const parts: Node[] = [];
    if (index !== null && at !== null) {
      parts.push(el("time", {}, view.moment(at, data)));
    }
    panel.lines.forEach((line, i) => {
      const swatch = el("span", { class: line.dashed ? "swatch dashed" : "swatch", "aria-hidden": "true" });
      swatch.style.setProperty("--swatch", paint(i));
      const number = index === null ? "" : ` ${value(line.values[index], panel.unit)}`;
      parts.push(el("span", { class: "item" }, swatch, line.name + number));
    });
    readout.replaceChildren(...parts);
  };
  const redraw = (): void => {
    const { min, max } = view.range;
    const known = panel.lines.some((l) => l.values.some((v, i) => v !== null && (times[i] ?? 0) >= min && (times[i] ?? 0) <= max));
    target.hidden = !known;
    nothing.hidden = known;
    u.setScale("x", { min: view.range.min, max: view.range.max });
    u.redraw(true, true);
    tell();
  };
  const resize = (): void => {
    if (target.clientWidth > 0) u.setSize({ width: target.clientWidth, height: height + axisHeight });
  };
  const sizes = new ResizeObserver(resize);
  sizes.observe(target);
  tell();
  return {
    element: figure,
    redraw,
    tell,
    update: (now) => {
      times = now;
      u.setData(drawnData(), false);
      redraw();
    },
    destroy: () => {
      sizes.disconnect();
      u.destroy();
    },
  };
}

const lineColour = (device: number): string => colour(`line-${device % 8}`);

/** seconds are the distances of ticks on the time axis. */
const seconds = [
  0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200,
  86400, 172800, 604800,
];

/** binary are the distances of ticks for bytes. */
const binary = Array.from({ length: 50 }, (_, i) => 2 ** i);

/** decades are the powers of ten among the ticks of a logarithmic axis. */
const decades = (_: uPlot, at: number[]): (number | null)[] =>
  at.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6 ? v : null));

/** drawMarks draws levels, such as the ceiling of a disk, with their names. */
function drawMarks(u: uPlot, panel: Panel): void {
  const c = u.ctx;
  const scale = devicePixelRatio || 1;
  for (const m of panel.marks ?? []) {
    const y = u.valToPos(m.value, "y", true);
    if (!(y >= u.bbox.top && y <= u.bbox.top + u.bbox.height - 12 * scale)) continue; // no room for its name
    c.save();
    c.strokeStyle = c.fillStyle = lineColour(m.device);
    c.setLineDash([2 * scale, 3 * scale]);
    c.lineWidth = scale;
    c.beginPath();
    c.moveTo(u.bbox.left, y);
    c.lineTo(u.bbox.left + u.bbox.width, y);
    c.stroke();
    c.font = `${11 * scale}px system-ui, sans-serif`;
    c.textAlign = "right";
    c.textBaseline = "top";
    c.setLineDash([]);
    c.lineWidth = 4 * scale;
    c.strokeStyle = colour("back"); // behind the name, which a curve may cross
    c.strokeText(m.name, u.bbox.left + u.bbox.width - 4 * scale, y + 2 * scale);
    c.fillText(m.name, u.bbox.left + u.bbox.width - 4 * scale, y + 2 * scale);
    c.restore();
  }
}

/** nearest is the interval that holds a time, or null outside of all. */
function nearest(times: Float64Array, at: number): number | null {
  const first = times[0];
  const second = times[1];
  if (first === undefined) return null;
  const step = second === undefined ? 1 : second - first;
  const i = Math.round((at - first) / step);
  return i >= 0 && i < times.length ? i : null;
}
