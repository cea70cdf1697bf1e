import "uplot/dist/uPlot.min.css";
import "./style.css";
import { curves } from "./curves";
import { type Data, type Window, end, ledger } from "./data";
import { detail, verdictBadge } from "./detail";
import { el, followTheme, switchTheme } from "./dom";
import { duration } from "./format";
import { lanes } from "./lanes";
import { ledgerBar } from "./ledger";
import { View } from "./view";
import { windowTable } from "./windows";

function head(data: Data): HTMLElement {
  const r = data.run?.report ?? (data.windows.length === 1 ? data.windows[0]?.report : undefined);
  const slow = data.windows.filter((w) => w.report.slow).length;
  const line = [
    new Date(data.origin).toLocaleString(),
    duration(data.duration_s),
    `${data.windows.length} ${data.windows.length === 1 ? "window" : "windows"}, ${slow} slow`,
    ...(data.facts ?? []).map((f) => `${f.name} ${f.value}`),
  ].join(" · ");
  const theme = el("button", { type: "button", class: "theme" }, "Theme");
  theme.addEventListener("click", switchTheme);
  const header = el("header", {}, el("h1", {}, data.title), el("p", { class: "muted" }, line), theme);
  if (r) {
    header.append(el("p", { class: "answer" }, verdictBadge(r), " ", r.finding));
    const bar = ledgerBar(r);
    if (bar) header.append(bar);
    header.append(el("p", {}, el("strong", {}, "Try: "), r.remedy));
  }
  if (data.problems?.length) {
    header.append(
      el(
        "details",
        { class: "problems" },
        el("summary", {}, `What could not be read (${data.problems.length})`),
        el("ul", {}, ...data.problems.map((p) => el("li", {}, p))),
      ),
    );
  }
  return header;
}

function keys(data: Data, view: View): void {
  const order = data.windows.map((_, i) => i).sort((a, b) => (data.windows[a]?.start_s ?? 0) - (data.windows[b]?.start_s ?? 0));
  const step = (by: number, slowOnly: boolean): void => {
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

/** worst is the window that most needs an explanation: a slow one first, then the one that lost most time. */
function worst(data: Data): number | null {
  const lost = (w: Window): number => {
    const busy = ledger(w.report).find((p) => p.part === "busy")?.ratio ?? 0;
    return w.report.duration_s * (1 - busy) + (w.report.slow ? 1e12 : 0);
  };
  let found: number | null = null;
  let most = -1;
  data.windows.forEach((w, i) => {
    if (lost(w) > most) [found, most] = [i, lost(w)];
  });
  return found;
}

function start(): void {
  const root = document.getElementById("page");
  const text = document.getElementById("data")?.textContent;
  if (!root || !text) return;
  followTheme();
  const data = JSON.parse(text) as Data;
  const last = data.windows.reduce((m, w) => Math.max(m, end(w)), data.duration_s);
  const first = data.windows.reduce((m, w) => Math.min(m, w.start_s), 0);
  const view = new View({ min: first, max: Math.max(last, first + 0.2) });
  keys(data, view);
  root.append(
    head(data),
    el(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      el("h2", {}, "Timeline"),
      el(
        "p",
        { class: "muted help" },
        "Drag in a curve to zoom, double-click to see all. Keys: + - 0 zoom, arrows move, n p s select the next, previous, next slow window.",
      ),
      lanes(data, view),
      ...curves(data, view),
    ),
    detail(data, view),
    windowTable(data, view),
  );
  view.select(worst(data));
}

start();
