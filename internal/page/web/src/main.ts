// A report in one file: the data is in the page.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { body } from "./body";
import { type Data, type Window, end, ledger } from "./data";
import { verdictBadge } from "./detail";
import { el, followTheme, switchTheme } from "./dom";
import { duration, local } from "./format";
import { ledgerBar } from "./ledger";
import { View } from "./view";

function head(data: Data): HTMLElement {
  const r = data.run?.report ?? (data.windows.length === 1 ? data.windows[0]?.report : undefined);
  const slow = data.windows.filter((w) => w.report.slow).length;
  const line = [
    local(new Date(data.origin)),
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
  root.append(head(data), ...body(data, view));
  view.select(worst(data));
}

start();
