// The events of the machine: marks above the lanes of windows, and a list below the timeline.

import { type Live, type PageEvent, end } from "./data";
import { el } from "./dom";
import { left, right } from "./lanes";
import type { View } from "./view";

const markWidth = 24; // CSS pixels: what a finger can hit. Events that are closer share a mark
const inTip = 3; // events
const tipText = 160; // characters of each
const tipWidth = 260;
const firstRows = 10;
const moreRows = 50;

/** what says what kind of event it is, in a word. */
function what(e: PageEvent): "error" | "warning" | "over" | "note" {
  if (e.resolved) return "over";
  return e.severity === "ERROR" ? "error" : e.severity === "WARN" ? "warning" : "note";
}

const shapes = { error: "◆", warning: "▲", over: "○", note: "●" };
const ranks = { error: 3, warning: 2, note: 1, over: 0 };

/** kind is the name of an event without what all of them have in common. */
const kind = (e: PageEvent): string => e.name.replace(/^stallspan\./, "").replace(/\./g, " ");

const about = (e: PageEvent): string => (e.subject ? `${e.subject}: ` : "");

/** Mark is what is drawn at one place: the events that are too close for marks of their own. */
interface Mark {
  x: number;
  events: PageEvent[];
}

/** events are the marks and the list. Both are empty for a server without events. */
export function events(data: Live, view: View): { marks: HTMLElement; list: HTMLElement } {
  const { list, reveal } = eventList(data, view);
  return { marks: eventMarks(data, view, reveal), list };
}

function eventMarks(data: Live, view: View, reveal: (e: PageEvent) => void): HTMLElement {
  const bar = el("div", { class: "event-marks", role: "toolbar", "aria-label": "Events on the timeline" });
  const title = el("span", { class: "event-title", "aria-hidden": "true" }, "Events");
  const tip = el("div", { class: "tip", hidden: "" });
  const box = el("div", { class: "events-box" }, title, bar, tip);
  const buttons = new Map<string, HTMLButtonElement>(); // by the id of the first event
  const drawn = new Map<HTMLButtonElement, Mark>();
  let chosen: string | null = null; // the mark that Tab goes to
  let shown: HTMLButtonElement | null = null; // the mark whose tip is open

  const moment = (e: PageEvent): string => view.time(e.at_s, 1);
  const line = (e: PageEvent): string => `${moment(e)} ${what(e)}, ${about(e)}${e.text}`;
  const label = (m: Mark): string => {
    const more = m.events.length - inTip;
    const lines = m.events.slice(-inTip).map(line);
    if (more > 0) lines.push(`and ${more} before`);
    return m.events.length > 1 ? `${m.events.length} events: ${lines.join("; ")}` : lines.join("");
  };

  const hide = (): void => {
    if (shown === null) return;
    shown = null;
    tip.hidden = true;
    view.point(null);
  };
  const show = (b: HTMLButtonElement): void => {
    const m = drawn.get(b);
    const last = m?.events[m.events.length - 1];
    if (!m || !last) return;
    shown = b;
    fill(m);
    view.point(last.at_s);
  };
  const fill = (m: Mark): void => {
    const more = m.events.length - inTip;
    const lines = m.events.slice(-inTip).map((e) => el("div", {}, shorten(line(e))));
    tip.replaceChildren(...lines, ...(more > 0 ? [el("div", {}, `and ${more} before`)] : []));
    tip.hidden = false;
    tip.style.left = `${Math.max(0, Math.min(m.x - tipWidth / 2, box.clientWidth - tipWidth))}px`;
  };

  const make = (): HTMLButtonElement => {
    const b = el("button", { type: "button", tabindex: "-1" });
    b.addEventListener("pointerenter", () => show(b));
    b.addEventListener("pointerleave", () => {
      if (document.activeElement !== b) hide();
    });
    b.addEventListener("focus", () => {
      chosen = keyOf(b);
      offer();
      show(b);
    });
    b.addEventListener("blur", hide);
    b.addEventListener("click", () => {
      const last = drawn.get(b)?.events.slice(-1)[0];
      if (last) reveal(last);
    });
    return b;
  };
  const keyOf = (b: HTMLButtonElement): string | null => drawn.get(b)?.events[0]?.id ?? null;

  /** offer lets Tab reach one mark: the one that was used, or else the newest. Arrows go to the others. */
  const offer = (): void => {
    const all = [...drawn.keys()];
    const at = all.find((b) => keyOf(b) === chosen) ?? all[all.length - 1];
    for (const b of all) b.tabIndex = b === at ? 0 : -1;
  };
  bar.addEventListener("keydown", (e) => {
    if (e.key === "Escape") hide();
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const all = [...drawn.keys()];
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const to: number | undefined = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[e.key];
    if (at < 0 || to === undefined) return;
    e.preventDefault();
    e.stopPropagation(); // the timeline stays where it is
    all[to]?.focus();
  });

  const draw = (): void => {
    box.hidden = !data.events?.length;
    const width = box.clientWidth;
    if (width === 0) return;
    const { min, max } = view.range;
    const x = (t: number): number => left + ((t - min) / (max - min)) * (width - left - right);
    const marks: Mark[] = [];
    for (const e of data.events ?? []) {
      if (e.at_s < min || e.at_s > max) continue;
      const last = marks[marks.length - 1];
      if (last && x(e.at_s) - last.x < markWidth) last.events.push(e);
      else marks.push({ x: x(e.at_s), events: [e] });
    }
    drawn.clear();
    const used = new Set<string>();
    marks.forEach((m, i) => {
      const id = m.events[0]?.id ?? "";
      const b = buttons.get(id) ?? make();
      buttons.set(id, b);
      used.add(id);
      drawn.set(b, m);
      const worst = m.events.map(what).reduce((a, k) => (ranks[k] > ranks[a] ? k : a));
      const text = m.events.length > 1 ? String(m.events.length) : shapes[worst];
      if (b.textContent !== text) b.textContent = text;
      b.className = `mark ${worst}${m.events.length > 1 ? " several" : ""}`;
      const says = label(m);
      if (b.getAttribute("aria-label") !== says) b.setAttribute("aria-label", says);
      b.style.left = `${m.x - markWidth / 2}px`;
      if (bar.children[i] !== b) bar.insertBefore(b, bar.children[i] ?? null);
    });
    for (const [id, b] of buttons) {
      if (used.has(id)) continue;
      if (b === shown) hide();
      b.remove();
      buttons.delete(id);
    }
    const open = shown && drawn.get(shown);
    if (open) fill(open);
    offer();
  };
  view.onRange(draw);
  view.onData(draw);
  new ResizeObserver(draw).observe(box);
  draw();
  return box;
}

const shorten = (text: string): string => (text.length > tipText ? `${text.slice(0, tipText)}…` : text);

function eventList(data: Live, view: View): { list: HTMLElement; reveal: (e: PageEvent) => void } {
  const count = el("p", { class: "muted", role: "status" });
  const rows = el("ul", { class: "event-list" });
  const more = el("button", { type: "button", hidden: "" }, "Show more");
  const list = el("section", { class: "events", "aria-label": "Events" }, el("h2", {}, "Events"), count, rows, more);
  let most = firstRows;
  let listed: string | null = null;

  const newest = (): PageEvent[] => [...(data.events ?? [])].reverse();

  /** go shows the time of an event in the timeline, and selects the window that it is about. */
  const go = (e: PageEvent): void => {
    const { min, max } = view.range;
    if (e.at_s < min || e.at_s > max) view.show(e.at_s - (max - min) / 2, e.at_s + (max - min) / 2);
    view.point(e.at_s);
    const at = data.windows.findIndex((w) => w.label === e.subject && w.start_s - 1 <= e.at_s && e.at_s <= end(w) + 1);
    if (at >= 0) view.select(at);
    document.querySelector(".timeline")?.scrollIntoView({ block: "nearest" });
  };
  const row = (e: PageEvent): HTMLElement => {
    const at = view.time(e.at_s, 1);
    const time = el("button", { type: "button", class: "link", "aria-label": `Show ${at} in the timeline` }, at);
    time.addEventListener("click", () => go(e));
    const k = what(e);
    return el(
      "li",
      { "data-id": e.id },
      time,
      " ",
      el("span", { class: `badge event ${k}` }, `${shapes[k]} ${k.toUpperCase()}`),
      " ",
      e.subject ? el("strong", {}, e.subject) : null,
      ` ${e.subject && e.text.startsWith(`${e.subject} `) ? e.text.slice(e.subject.length + 1) : e.text} `,
      el("span", { class: "muted" }, kind(e)),
    );
  };
  const fill = (): void => {
    const all = newest();
    const focused = document.activeElement?.closest<HTMLElement>(".event-list li")?.dataset["id"];
    rows.replaceChildren(...all.slice(0, most).map(row));
    more.hidden = all.length <= most;
    more.textContent = `Show ${Math.min(moreRows, all.length - most)} more`;
    const says = all.length === 0 ? "No event in this time." : all.length === 1 ? "1 event in this time." : `${all.length} events in this time.`;
    if (count.textContent !== says) count.textContent = says;
    if (focused !== undefined) find(focused)?.focus();
  };
  const find = (id: string): HTMLElement | undefined =>
    [...rows.querySelectorAll("li")].find((li) => li.dataset["id"] === id)?.querySelector("button") ?? undefined;
  const reveal = (e: PageEvent): void => {
    const at = newest().findIndex((other) => other.id === e.id);
    if (at >= most) {
      most = at + 1;
      fill();
    }
    find(e.id)?.focus();
  };
  more.addEventListener("click", () => {
    most += moreRows;
    fill();
  });
  // Rows change with the events alone: one that changes under the pointer or the keyboard would be lost.
  const renew = (): void => {
    list.hidden = !data.events;
    const now = (data.events ?? []).map((e) => e.id).join(" ");
    if (now === listed) return;
    listed = now;
    fill();
  };
  view.onData(renew);
  addEventListener("beforeprint", () => {
    most = data.events?.length ?? most;
    fill();
  });
  renew();
  return { list, reveal };
}
