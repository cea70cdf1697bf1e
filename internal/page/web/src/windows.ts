// The table of windows: it sorts, and filters by text, verdict and slowness.

import { type Data, type Part, type Window, ledger } from "./data";
import { verdictBadge } from "./detail";
import { el } from "./dom";
import { duration } from "./format";
import type { View } from "./view";

const page = 200; // rows that are added at once

interface Column {
  name: string;
  text: (w: Window) => string;
  key: (w: Window) => number | string;
}

function share(w: Window, part: Part): number {
  return ledger(w.report).find((p) => p.part === part)?.percent ?? -1;
}

function columns(data: Data, view: View): Column[] {
  const ratio = (part: Part): Omit<Column, "name"> => ({
    text: (w) => (share(w, part) < 0 ? "-" : `${share(w, part)} %`),
    key: (w) => share(w, part),
  });
  const gpu = data.windows.some((w) => w.report.gpu);
  const all: Column[] = [
    { name: "Start", text: (w) => view.time(w.start_s, 0.1), key: (w) => w.start_s },
    { name: "Time", text: (w) => duration(w.report.duration_s), key: (w) => w.report.duration_s },
    { name: gpu ? "GPU busy" : "On CPU", ...ratio("busy") },
    { name: "Storage", ...ratio("storage") },
  ];
  if (gpu) all.push({ name: "CPU", ...ratio("cpu") });
  if (data.windows.some((w) => w.report.stall?.ready_s)) all.push({ name: "No core", ...ratio("ready") });
  all.push({ name: "Other", ...ratio("other") });
  return all;
}

/** summary changes when a window begins or ends, and when those of another time are shown. */
const summary = (data: Data): string =>
  [...data.windows.map((w) => (w.running ? "r" : "e")), data.windows[0]?.report.id, data.windows[data.windows.length - 1]?.report.id].join(" ");

export function windowTable(data: Data, view: View): HTMLElement {
  const cols: Column[] = [{ name: "Window", text: (w) => w.label, key: (w) => w.label }, ...columns(data, view)];
  const verdicts = (): string[] => [...new Set(data.windows.map((w) => w.report.verdict))].sort();
  const search = el("input", { type: "search", placeholder: "name or finding", "aria-label": "Filter by name or finding" });
  const verdict = el(
    "select",
    { "aria-label": "Filter by verdict" },
    el("option", { value: "" }, "all verdicts"),
  );
  const offer = (): void => {
    const known = new Set([...verdict.options].map((o) => o.value));
    for (const v of verdicts()) if (!known.has(v)) verdict.append(el("option", { value: v }, v.replace(/_/g, " ")));
  };
  offer();
  const slow = el("input", { type: "checkbox", id: "slow-only" });
  const count = el("span", { class: "muted", role: "status" });
  const body = el("tbody");
  const more = el("button", { type: "button", hidden: "" }, "Show more");
  const began = 1; // the column
  let sort = { column: began, down: false };
  let shown = page;

  const heads = [...cols.map((c) => c.name), "Verdict"].map((name, i) => {
    const button = el("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      sort = { column: i, down: sort.column === i ? !sort.down : i > 1 };
      fill();
    });
    return el("th", { scope: "col" }, button);
  });

  const chosen = (): number[] => {
    const text = search.value.trim().toLowerCase();
    const keep = data.windows.flatMap((w, i) => {
      const r = w.report;
      const fits =
        (!verdict.value || r.verdict === verdict.value) &&
        (!slow.checked || r.slow) &&
        (!text || w.label.toLowerCase().includes(text) || r.finding.toLowerCase().includes(text));
      return fits ? [i] : [];
    });
    const key = cols[sort.column]?.key ?? ((w: Window) => w.report.verdict);
    const starts = new Map(data.windows.map((w) => [w.report.id, w.start_s]));
    const place = (w: Window): number | string =>
      sort.column === began && w.report.within ? (starts.get(w.report.within) ?? w.start_s) : key(w);
    const values = new Map(keep.map((i) => [i, place(data.windows[i] as Window)]));
    const inner = (i: number): number => (data.windows[i]?.report.within ? 1 : 0); // stands below its epoch
    const collator = new Intl.Collator(undefined, { numeric: true });
    keep.sort((a, b) => {
      const x = values.get(a) ?? 0;
      const y = values.get(b) ?? 0;
      const order = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(String(x), String(y));
      return (sort.down ? -order : order) || inner(a) - inner(b) || a - b;
    });
    return keep;
  };

  const row = (i: number): HTMLTableRowElement => {
    const w = data.windows[i] as Window;
    const button = el("button", { type: "button", class: "link" }, w.label);
    button.addEventListener("click", () => {
      view.select(i);
      document.querySelector(".detail")?.scrollIntoView({ block: "nearest" });
    });
    return el(
      "tr",
      { "data-index": String(i), ...(view.selected === i ? { "aria-selected": "true" } : {}) },
      el("th", { scope: "row", ...(w.report.within ? { class: "within" } : {}) }, button),
      ...cols.slice(1).map((c) => el("td", {}, c.text(w))),
      el("td", {}, verdictBadge(w.report), w.report.slow ? el("span", { class: "badge slow" }, "▲ SLOW") : null),
    );
  };

  const fill = (): void => {
    const list = chosen();
    heads.forEach((h, i) => {
      if (i === sort.column) h.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else h.removeAttribute("aria-sort");
    });
    body.replaceChildren(...list.slice(0, shown).map(row));
    more.hidden = list.length <= shown;
    more.textContent = `Show ${Math.min(page, list.length - shown)} more`;
    count.textContent = `${list.length} of ${data.windows.length}`;
  };
  const refill = (): void => {
    shown = page;
    fill();
  };
  search.addEventListener("input", refill);
  verdict.addEventListener("change", refill);
  slow.addEventListener("change", refill);
  more.addEventListener("click", () => {
    shown += page;
    fill();
  });
  view.onSelect(() => {
    for (const tr of body.querySelectorAll("tr")) {
      if (tr.dataset["index"] === String(view.selected)) tr.setAttribute("aria-selected", "true");
      else tr.removeAttribute("aria-selected");
    }
  });
  addEventListener("beforeprint", () => {
    shown = data.windows.length;
    fill();
  });
  fill();
  // A row that changes under the pointer or the keyboard would be lost, so only windows that begin or end change the table.
  let listed = summary(data);
  view.onData(() => {
    const now = summary(data);
    if (now === listed) return;
    listed = now;
    offer();
    fill();
  });
  return el(
    "section",
    { class: "windows", "aria-label": "All windows" },
    el("h2", {}, "Windows"),
    el("div", { class: "filters" }, search, verdict, el("label", { for: "slow-only" }, slow, "slow ones only"), count),
    el("div", { class: "scroll" }, el("table", { class: "sortable" }, el("thead", {}, el("tr", {}, ...heads)), body)),
    more,
  );
}
