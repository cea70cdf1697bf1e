// The page of a machine: it asks its server for the data, and follows what is new.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { body } from "./body";
import { type Live, type Update, type Window, end } from "./data";
import { verdictBadge } from "./detail";
import { el, followTheme, switchTheme } from "./dom";
import { events } from "./events";
import { clock } from "./format";
import { jobTable } from "./jobs";
import { covers, longest, place, placeUpdate, spanFor, spans } from "./past";
import { apply } from "./update";
import { View } from "./view";

/** ahead is how much later than the curves a window may end, in seconds: the curves wait for the GPUs' drivers. */
const ahead = 2;

const longestPause = 15; // seconds between two attempts to connect

const settleTime = 250; // milliseconds that the reader rests before another time is loaded

const tokenKey = "stallspan-token";

/** Asked is what the part of the address after # asks for: the last seconds, or a time in Unix seconds. */
interface Asked {
  seconds: number;
  from?: number;
  to?: number;
  window?: string; // the id of one to select
}

/** asked reads the address. It takes a token out of it, which nobody must see over a shoulder or in a history. */
function asked(): Asked {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  if (token) {
    sessionStorage.setItem(tokenKey, token);
    given.delete("token");
    history.replaceState(null, "", given.size > 0 ? `#${given.toString()}` : location.pathname);
  }
  const from = Number(given.get("from"));
  const to = Number(given.get("to"));
  const seconds = Number(given.get("seconds")) || 600;
  const window = given.get("window") ?? undefined;
  return from > 0 && to > from ? { seconds, from, to, window } : { seconds, window };
}

function start(): void {
  const root = document.getElementById("page");
  const path = document.getElementById("data")?.dataset["live"];
  if (!root || !path) return;
  followTheme();
  let want = asked();
  const state = el("p", { class: "muted state", role: "status" }, "Connecting…");
  const answer = el("p", { class: "answer" });
  const problems = el("details", { class: "problems", hidden: "" });
  const theme = el("button", { type: "button", class: "theme" }, "Theme");
  theme.addEventListener("click", switchTheme);
  const now = el("button", { type: "button", hidden: "" }, "Show now");
  const buttons = spans.map(([seconds, name]) => {
    const button = el("button", { type: "button", title: `Show the last ${name}` }, name);
    button.addEventListener("click", () => present(seconds));
    return button;
  });
  const choice = el("div", { class: "spans", role: "group", "aria-label": "Time that is shown" }, ...buttons);
  const title = el("h1", {}, document.title.replace(/ - Stallspan$/, ""));
  root.append(el("header", {}, title, el("div", { class: "filters" }, choice, now, state), theme, answer, problems));

  /** zero is second 0 of the page, in milliseconds: midnight, so that ticks are at whole hours of the clock. */
  const zero = new Date().setHours(0, 0, 0, 0);
  let data: Live | null = null;
  let view: View | null = null;
  let stop = new AbortController();

  const say = (text: string, broken = false): void => {
    state.textContent = text;
    state.classList.toggle("broken", broken);
  };

  /** before is a link to a time that has a window of before. */
  const before = (w: { label: string; end_s: number }, d: Live): HTMLElement => {
    const at = clock(new Date(zero + w.end_s * 1000), 1);
    const link = el("button", { type: "button", class: "link" }, `${w.label}, until ${at}`);
    link.addEventListener("click", () => present(spanFor(d.now_s - w.end_s + 60)));
    return link;
  };

  /** answered shows the newest window that ended. */
  const answered = (d: Live): void => {
    const ended = d.windows.filter((w) => !w.running);
    const last = ended.reduce<Window | undefined>((a, b) => (a && end(a) > end(b) ? a : b), undefined);
    answer.replaceChildren(
      ...(last
        ? [`${last.label}: `, verdictBadge(last.report), ` ${last.report.finding}`]
        : d.last
          ? ["No window has ended in this time. The last one was ", before(d.last, d), "."]
          : ["No window has ended in this time. Announce one: stallspan run, stallspan mark, or the Python package. Your own are on the page of stallspan page."]),
    );
  };
  const full = (d: Live): { min: number; max: number } => ({
    min: Math.min(d.oldest_s, d.curves.start_s),
    max: Math.max(d.latest_s, d.now_s) + ahead,
  });

  /** open shows the data that a connection begins with. */
  const open = (fresh: Live): void => {
    const list = fresh.problems ?? [];
    problems.hidden = list.length === 0;
    problems.replaceChildren(el("summary", {}, `What is not shown (${list.length})`), el("ul", {}, ...list.map((p) => el("li", {}, p))));
    const chosen = want.window ?? (view?.selected == null ? undefined : data?.windows[view.selected]?.report.id);
    delete want.window;
    if (data && view) {
      Object.assign(data, fresh);
      view.renew(full(data));
    } else {
      data = fresh;
      view = new View(full(data), zero);
      if (want.from && want.to) view.show(want.from - zero / 1000, want.to - zero / 1000);
      else view.show(view.full.max - want.seconds, view.full.max);
      root.append(...body(data, view, { ...events(data, view), jobs: jobs.section }));
      view.onRange(settle);
    }
    const at = data.windows.findIndex((w) => w.report.id === chosen);
    view.select(at < 0 ? null : at);
    answered(data);
    press();
    jobs.show(want.from, want.to);
  };
  const more = (update: Update): boolean => {
    if (!data || !view) return false;
    const chosen = view.selected === null ? undefined : data.windows[view.selected]?.report.id;
    if (!apply(data, update)) return false;
    const at = chosen === undefined ? -1 : data.windows.findIndex((w) => w.report.id === chosen);
    if (at !== (view.selected ?? -1)) view.selected = at < 0 ? null : at;
    draw();
    return true;
  };

  /** draw draws at most once a frame, and not at all while the tab is hidden. */
  let drawing = false;
  const draw = (): void => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      if (!data || !view) return;
      view.renew(full(data));
      answered(data);
    });
  };

  const headers = (): Record<string, string> => {
    const token = sessionStorage.getItem(tokenKey);
    return token ? { Authorization: `Bearer ${token}` } : {};
  };

  const jobs = jobTable(headers);

  /** follow reads one connection to its end. */
  const follow = async (until: AbortSignal): Promise<void> => {
    const fixed = want.from !== undefined;
    const query = fixed ? `?from=${want.from}&to=${want.to}` : `/live?seconds=${want.seconds}`;
    const response = await fetch(path + query, { headers: headers(), signal: until, cache: "no-store" });
    if (response.status === 401) {
      await askForToken(root, state);
      return follow(until);
    }
    if (!response.ok || !response.body) {
      const refused = (await response.json().catch(() => null)) as { error?: string } | null;
      const why = refused?.error ?? `the server answers ${response.status}`;
      if (response.status === 400) {
        say(`This cannot be shown: ${why}.`, true);
        return;
      }
      throw new Error(why);
    }
    if (fixed) {
      open(place((await response.json()) as Live, zero));
      say("A time in the past.");
      return;
    }
    let text = "";
    let shift = 0; // seconds from the page's second 0 to that of the connection
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the server has ended the connection");
      text += value;
      for (let cut = text.indexOf("\n\n"); cut >= 0; cut = text.indexOf("\n\n")) {
        const [kind, payload] = event(text.slice(0, cut));
        text = text.slice(cut + 2);
        if (kind === "page") {
          const fresh = JSON.parse(payload) as Live;
          shift = (Date.parse(fresh.origin) - zero) / 1000;
          open(place(fresh, zero));
        } else if (kind === "update" && !more(placeUpdate(JSON.parse(payload) as Update, shift))) throw new Error("a part is missing");
        say("Live.");
        pause = 1;
      }
    }
  };
  let pause = 1;
  const run = async (): Promise<void> => {
    stop.abort();
    const mine = (stop = new AbortController());
    now.hidden = want.from === undefined;
    while (!mine.signal.aborted) {
      try {
        await follow(mine.signal);
        return;
      } catch (e) {
        if (mine.signal.aborted) return;
        say(`Not connected: ${e instanceof Error ? e.message : String(e)}. Next attempt in ${pause} s.`, true);
        await new Promise((done) => setTimeout(done, pause * 1000));
        pause = Math.min(longestPause, pause * 2);
      }
    }
  };

  /** press marks the button of the span that is shown. */
  const press = (): void => {
    const shown = want.from === undefined ? want.seconds : null;
    spans.forEach(([seconds], i) => buttons[i]?.setAttribute("aria-pressed", String(seconds === shown)));
  };

  /** load asks the server for another time. */
  const load = (other: Asked): void => {
    want = other;
    say("Loading…");
    press();
    void run();
  };

  /** address puts what is shown into the address, for a link or a reload. */
  const address = (shown: Asked): void => {
    const { seconds, from, to } = shown;
    history.replaceState(null, "", from && to ? `#from=${Math.round(from)}&to=${Math.round(to)}` : `#seconds=${seconds}`);
  };

  /** present follows the last seconds. */
  const present = (seconds: number): void => {
    view?.show(view.full.max - seconds, view.full.max);
    address({ seconds });
    load({ seconds });
  };
  now.addEventListener("click", () => present(want.seconds));

  /** settle loads what the reader has moved to, once he rests. */
  let settled = 0;
  const settle = (): void => {
    clearTimeout(settled);
    settled = window.setTimeout(() => {
      if (!data || !view) return;
      const { min, max } = view.range;
      now.hidden = view.follows;
      if (view.follows) {
        const seconds = spanFor(view.wanted);
        address({ seconds });
        const known = want.from === undefined && (seconds === want.seconds || (seconds < want.seconds && data.curves.step_s <= 1));
        if (!known) load({ seconds });
        return;
      }
      address({ seconds: want.seconds, from: min + zero / 1000, to: max + zero / 1000 });
      if (!covers(data, view.range)) {
        const beside = (max - min) / 2; // so that the next move shows something at once
        const to = Math.min(view.full.max, max + beside);
        const from = Math.max(view.full.min, min - beside, to - longest);
        load({ seconds: want.seconds, from: from + zero / 1000, to: to + zero / 1000 });
      }
    }, settleTime);
  };
  addEventListener("hashchange", () => {
    want = asked();
    if (want.from && want.to) view?.show(want.from - zero / 1000, want.to - zero / 1000);
    else view?.show(view.full.max - want.seconds, view.full.max);
    clearTimeout(settled);
    void run();
  });
  void run();
}

/** event reads one server-sent event. */
function event(text: string): [kind: string, data: string] {
  let kind = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return [kind, data.join("\n")];
}

/** askForToken waits until the reader has entered the server's token. It is kept until the tab is closed. */
function askForToken(root: HTMLElement, state: HTMLElement): Promise<void> {
  state.textContent = "This server needs its token.";
  const input = el("input", { type: "password", id: "token", autocomplete: "off", required: "" });
  const form = el(
    "form",
    { class: "token" },
    el("label", { for: "token" }, "Token: the text of the server's token_file"),
    input,
    el("button", {}, "Show the page"),
  );
  root.append(form);
  input.focus();
  return new Promise((done) => {
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      sessionStorage.setItem(tokenKey, input.value.trim());
      form.remove();
      done();
    });
  });
}

start();
