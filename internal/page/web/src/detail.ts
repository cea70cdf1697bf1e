// Everything that is known of one window.

import { type Data, type Report, type WhatIf, type Window } from "./data";
import { el } from "./dom";
import { bytes, duration, percent, times } from "./format";
import { ledgerBar } from "./ledger";
import type { View } from "./view";

export function detail(data: Data, view: View): HTMLElement {
  const section = el("section", { class: "detail", "aria-live": "polite", "aria-label": "The selected window" });
  let shown: Window | undefined;
  const show = (): void => {
    const w = view.selected === null ? undefined : data.windows[view.selected];
    shown = w;
    section.setAttribute("aria-live", w?.running ? "off" : "polite"); // a running one changes every second
    section.replaceChildren(...(w ? windowDetail(w, view) : [el("p", { class: "muted" }, "Select a window to see why it took its time.")]));
  };
  view.onSelect(show);
  view.onData(() => {
    const w = view.selected === null ? undefined : data.windows[view.selected];
    if (w !== shown) show();
  });
  show();
  return section;
}

export function verdictBadge(r: Report): HTMLElement {
  return el("span", { class: `badge v-${r.verdict}` }, r.verdict.replace(/_/g, " "));
}

function windowDetail(w: Window, view: View): Node[] {
  const r = w.report;
  const zoom = el("button", { type: "button" }, "Zoom to it");
  const span = r.duration_s;
  zoom.addEventListener("click", () => view.show(w.start_s - span * 0.05, w.start_s + span * 1.05));
  const out: (Node | null)[] = [
    el(
      "h2",
      {},
      `${w.label} `,
      verdictBadge(r),
      r.slow ? el("span", { class: "badge slow" }, "▲ SLOW") : null,
    ),
    el("p", { class: "muted" }, facts(w, view), " ", zoom),
    el("p", { class: "finding" }, r.finding),
    ledgerBar(r),
    el("p", {}, el("strong", {}, "Try: "), r.remedy),
    whatIf(r.what_if),
    ...(r.findings ?? []).map((f) => el("p", {}, f.text + (f.remedy ? ` ${f.remedy}` : ""))),
    reasons(r),
    disks(r),
  ];
  return out.filter((n): n is Node => n !== null);
}

function facts(w: Window, view: View): string {
  const r = w.report;
  let text = `${duration(r.duration_s)}, from ${view.time(w.start_s, 0.1)} to ${view.time(w.start_s + r.duration_s, 0.1)}.`;
  if (r.unfinished) text += " It was cut before its end.";
  if (r.baseline) {
    text += ` Usually ${duration(r.baseline.median_s)}, 95 of 100 below ${duration(r.baseline.p95_s)} (${r.baseline.count} windows).`;
  }
  if (r.uncertainty_ratio) text += ` Uncertain by ${percent(r.uncertainty_ratio)} of its time.`;
  return text;
}

function whatIf(w: WhatIf | undefined): HTMLElement | null {
  if (!w) return null;
  const rows: [string, string][] = [];
  if (w.no_storage) {
    const [low, high] = [w.no_storage_low ?? 0, w.no_storage_high ?? 0];
    const wide = low > 0 && (high >= 100 || Math.max(high, w.no_storage) > 3 * low);
    const range = low && high ? ` (${times(low)} to ${times(high)})` : "";
    rows.push(["Storage without waiting", wide ? `at least ${times(low)}` : times(w.no_storage) + range]);
  }
  if (w.twice_the_workers) rows.push(["Twice the workers that read", times(w.twice_the_workers)]);
  if (w.two_workers_at_most) rows.push(["Two workers that read, at most", times(w.two_workers_at_most)]);
  if (w.gpu_twice_as_fast) rows.push(["A GPU twice as fast", times(w.gpu_twice_as_fast)]);
  if (rows.length === 0) return null;
  return table("What if", ["Change", "Speed-up"], rows);
}

function reasons(r: Report): HTMLElement | null {
  const list = r.stall?.other_reasons ?? [];
  if (list.length === 0) return null;
  return table("What is in other", ["Waiting", "Time"], list.map((x) => [x.name, duration(x.time_s)]));
}

function disks(r: Report): HTMLElement | null {
  const list = r.disks ?? [];
  if (list.length === 0) return null;
  return table(
    "Disks, with the I/O of all programs",
    ["Disk", "Read", "Each read", "Written", "Each write", "In flight"],
    list.map((d) => [
      d.name,
      bytes(d.read_bytes),
      d.read_await_s === undefined ? "-" : duration(d.read_await_s),
      bytes(d.write_bytes),
      d.write_await_s === undefined ? "-" : duration(d.write_await_s),
      d.queue_depth?.toFixed(1) ?? "-",
    ]),
  );
}

export function table(caption: string, head: string[], rows: string[][]): HTMLElement {
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
      el(
        "tbody",
        {},
        ...rows.map((r) =>
          el("tr", {}, ...r.map((text, i) => (i === 0 ? el("th", { scope: "row" }, text) : el("td", {}, text)))),
        ),
      ),
    ),
  );
}
