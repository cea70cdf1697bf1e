// The lanes of windows above the curves. Each kind has lanes of its own; windows at the same time lie below each other.

import { type Data, type Window, end } from "./data";
import { colour, el, onTheme } from "./dom";
import { duration } from "./format";
import type { View } from "./view";

const laneHeight = 24;
const stallHeight = 8;
const gap = 4;
const maxLanes = 4; // of a kind; further windows are drawn in the last one

export const kindNames: Record<string, string> = {
  epoch: "Epochs",
  model_load: "Loads",
  checkpoint: "Checkpoints",
  custom: "Windows",
  steps: "Steps",
};

interface Placed {
  index: number;
  window: Window;
  lane: number;
}

interface Layout {
  placed: Placed[];
  lanes: { title: string }[];
  stalls: [number, number][];
}

function layout(data: Data): Layout {
  const lanes: { title: string }[] = [];
  const placed: Placed[] = [];
  const kinds = [...new Set(data.windows.map((w) => w.report.kind))];
  for (const kind of kinds) {
    const first = lanes.length;
    const ends: number[] = [];
    data.windows.forEach((window, index) => {
      if (window.report.kind !== kind) return;
      let lane = ends.findIndex((e) => e <= window.start_s + 1e-3);
      if (lane < 0) lane = Math.min(ends.length, maxLanes - 1);
      ends[lane] = Math.max(ends[lane] ?? 0, end(window));
      placed.push({ index, window, lane: first + lane });
    });
    ends.forEach((_, i) => lanes.push({ title: i === 0 ? (kindNames[kind] ?? kind) : "" }));
  }
  // Slow ones are drawn last: they must show where there are more windows than pixels.
  placed.sort((a, b) => Number(a.window.report.slow) - Number(b.window.report.slow));
  return { placed, lanes, stalls: stalls(data) };
}

/** stalls are the intervals without a doubt in which the work waited for storage. */
function stalls(data: Data): [number, number][] {
  const found: [number, number][] = [];
  for (const w of data.windows) {
    const began = Date.parse(w.report.start);
    for (const s of w.report.storage_stalls ?? []) {
      const from = w.start_s + (Date.parse(s.start) - began) / 1000;
      found.push([from, from + s.duration_s]);
    }
  }
  return found;
}

export const left = 76; // width of the value axes and of the lanes' titles, in CSS pixels
export const right = 18; // room for the last label of the time axis

export function lanes(data: Data, view: View): HTMLElement {
  let { placed, lanes, stalls } = layout(data);
  let height = 0;
  const canvas = el("canvas", { class: "lanes", tabindex: "0", role: "img" });
  const place = (): void => {
    ({ placed, lanes, stalls } = layout(data));
    height = lanes.length * (laneHeight + gap) + (stalls.length > 0 ? stallHeight + gap : 0);
    canvas.style.height = `${height}px`;
    canvas.setAttribute(
      "aria-label",
      `Timeline of ${placed.length} windows. The keys n and p go to the next and the previous one. The table below has all of them.`,
    );
  };
  place();
  const tip = el("div", { class: "tip", hidden: "" });
  const box = el("div", { class: "lanes-box" }, canvas, tip);

  let width = 0;
  const x = (t: number): number => left + ((t - view.range.min) / (view.range.max - view.range.min)) * (width - left - right);
  const time = (px: number): number =>
    view.range.min + ((px - left) / Math.max(1, width - left - right)) * (view.range.max - view.range.min);

  const draw = (): void => {
    const scale = devicePixelRatio || 1;
    width = canvas.clientWidth;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const c = canvas.getContext("2d");
    if (!c || width === 0) return;
    c.scale(scale, scale);
    c.clearRect(0, 0, width, height);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    const text = colour("text");
    const slow = colour("slow");
    lanes.forEach((lane, i) => {
      c.fillStyle = text;
      c.fillText(lane.title, 0, i * (laneHeight + gap) + laneHeight / 2, left - 6);
    });
    c.save();
    c.beginPath();
    c.rect(left, 0, width - left, height);
    c.clip();
    for (const p of placed) {
      const a = x(p.window.start_s);
      const b = x(end(p.window));
      if (b < left || a > width) continue;
      const top = p.lane * (laneHeight + gap);
      const r = p.window.report;
      const w = Math.max(r.slow ? 2 : 1, b - a - (b - a > 4 ? 1 : 0));
      c.fillStyle = colour(`verdict-${r.verdict}`) || colour("verdict-unknown");
      c.fillRect(a, top, w, laneHeight);
      if (r.slow) {
        c.fillStyle = slow;
        c.fillRect(a, top, w, w > 4 ? 5 : laneHeight);
      }
      if (p.index === view.selected) {
        c.strokeStyle = text;
        c.lineWidth = 2;
        c.strokeRect(a + 1, top + 1, Math.max(1, w - 2), laneHeight - 2);
      }
      const from = Math.max(a, left);
      const room = Math.min(b, width) - from - 8;
      if (room > 14) {
        const label = (r.slow ? "▲ " : "") + p.window.label;
        c.fillStyle = colour(`on-verdict-${r.verdict}`) || colour("on-verdict-unknown");
        c.fillText(fit(c, label, room), from + 4, top + laneHeight / 2 + (r.slow ? 2 : 0));
      }
    }
    const top = lanes.length * (laneHeight + gap);
    c.fillStyle = colour("storage");
    for (const [a, b] of stalls) c.fillRect(x(a), top, Math.max(1, x(b) - x(a)), stallHeight);
    if (view.cursor !== null) {
      c.fillStyle = colour("muted");
      c.fillRect(Math.round(x(view.cursor)), 0, 1, height);
    }
    c.restore();
    if (stalls.length > 0) {
      c.fillStyle = text;
      c.fillText("Stalls", 0, top + stallHeight / 2, left - 6);
    }
  };

  const at = (e: MouseEvent): Placed | undefined => {
    const lane = Math.floor(e.offsetY / (laneHeight + gap));
    const t = time(e.offsetX);
    const near = ((view.range.max - view.range.min) / Math.max(1, width - left - right)) * 2;
    return placed.find((p) => p.lane === lane && p.window.start_s - near <= t && t <= end(p.window) + near);
  };

  let from: { x: number; min: number; max: number; moved: boolean } | null = null;
  canvas.addEventListener("pointerdown", (e) => {
    from = { x: e.offsetX, ...view.range, moved: false };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", (e) => {
    view.point(e.offsetX >= left ? time(e.offsetX) : null);
    if (from) {
      const by = ((from.x - e.offsetX) / Math.max(1, width - left - right)) * (from.max - from.min);
      if (Math.abs(e.offsetX - from.x) > 3) from.moved = true;
      if (from.moved) view.show(from.min + by, from.max + by);
    }
    const p = at(e);
    tip.hidden = !p;
    if (p) {
      const r = p.window.report;
      tip.textContent = `${p.window.label}: ${duration(r.duration_s)}, ${r.verdict}${r.slow ? ", SLOW" : ""}, from ${view.time(p.window.start_s, 1)}`;
      tip.style.left = `${Math.max(0, Math.min(e.offsetX + 12, width - 260))}px`;
      tip.style.top = `${(p.lane + 1) * (laneHeight + gap) + 4}px`;
    }
  });
  canvas.addEventListener("pointerup", (e) => {
    if (from && !from.moved) {
      const p = at(e);
      if (p) view.select(p.index);
    }
    from = null;
  });
  canvas.addEventListener("pointerleave", () => {
    tip.hidden = true;
    view.point(null);
  });
  canvas.addEventListener("dblclick", () => view.show(view.full.min, view.full.max));
  wheel(canvas, view, time);

  view.onRange(draw);
  view.onCursor(draw);
  view.onSelect(draw);
  view.onData(() => {
    place();
    draw();
  });
  onTheme(draw);
  new ResizeObserver(draw).observe(canvas);
  return box;
}

/** wheel zooms with the wheel and Ctrl, or a pinch, and pans sideways: a plain wheel scrolls the page. */
export function wheel(target: HTMLElement, view: View, time: (px: number) => number): void {
  target.addEventListener(
    "wheel",
    (e) => {
      if (e.ctrlKey || e.metaKey) {
        e.preventDefault();
        const box = target.getBoundingClientRect();
        view.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200))), time(e.clientX - box.left));
      } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) {
        e.preventDefault();
        view.pan((e.deltaX || e.deltaY) / 800);
      }
    },
    { passive: false },
  );
}

function fit(c: CanvasRenderingContext2D, text: string, room: number): string {
  if (c.measureText(text).width <= room) return text;
  let n = text.length;
  while (n > 1 && c.measureText(text.slice(0, n) + "…").width > room) n--;
  return n > 1 ? text.slice(0, n) + "…" : "";
}
