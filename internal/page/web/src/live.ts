// The page of a machine: it asks its server for the data, and follows what is new.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { body } from "./body";
import { type Live, type Update, type Window, end } from "./data";
import { verdictBadge } from "./detail";
import { el, followTheme, switchTheme } from "./dom";
import { apply } from "./update";
import { View } from "./view";

/** ahead is how much later than the curves a window may end, in seconds: the curves wait for the GPUs' drivers. */
const ahead = 2;

const longestPause = 15; // seconds between two attempts to connect

/** spans are the times that can be shown, in seconds. */
const spans: [number, string][] = [
  [600, "10 minutes"],
  [3600, "1 hour"],
  [6 * 3600, "6 hours"],
  [24 * 3600, "24 hours"],
];

const tokenKey = "stallspan-token";

/** Asked is what the part of the address after # asks for. */
interface Asked {
  seconds: number;
  from?: string;
  to?: string;
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
  const from = given.get("from");
  const to = given.get("to");
  const seconds = Number(given.get("seconds")) || 600;
  return from && to ? { seconds, from, to } : { seconds };
}

function start(): void {
  const root = document.getElementById("page");
  const path = document.getElementById("data")?.dataset["live"];
  if (!root || !path) return;
  followTheme();
  const want = asked();
  const state = el("p", { class: "muted state", role: "status" }, "Connecting…");
  const answer = el("p", { class: "answer" });
  const problems = el("details", { class: "problems", hidden: "" });
  const theme = el("button", { type: "button", class: "theme" }, "Theme");
  theme.addEventListener("click", switchTheme);
  const span = el("select", { "aria-label": "Time that is shown" }, ...spans.map(([s, name]) => el("option", { value: String(s) }, name)));
  if (spans.some(([s]) => s === want.seconds)) span.value = String(want.seconds);
  const now = el("button", { type: "button", hidden: "" }, "Show now");
  const title = el("h1", {}, document.title.replace(/ - Stallspan$/, ""));
  root.append(el("header", {}, title, el("div", { class: "filters" }, span, now, state), theme, answer, problems));

  let data: Live | null = null;
  let view: View | null = null;
  let stop = new AbortController();

  const say = (text: string, broken = false): void => {
    state.textContent = text;
    state.classList.toggle("broken", broken);
  };

  /** answered shows the newest window that ended. */
  const answered = (d: Live): void => {
    const ended = d.windows.filter((w) => !w.running);
    const last = ended.reduce<Window | undefined>((a, b) => (a && end(a) > end(b) ? a : b), undefined);
    answer.replaceChildren(
      ...(last
        ? [`${last.label}: `, verdictBadge(last.report), ` ${last.report.finding}`]
        : ["No window has ended in this time. Announce one: stallspan run, stallspan mark, or the Python package."]),
    );
  };
  const full = (d: Live): { min: number; max: number } => ({
    min: d.curves.start_s,
    max: d.windows.reduce((m, w) => Math.max(m, end(w)), d.now_s + ahead),
  });

  /** open shows the data that a connection begins with. */
  const open = (fresh: Live): void => {
    const list = fresh.problems ?? [];
    problems.hidden = list.length === 0;
    problems.replaceChildren(el("summary", {}, `What is not shown (${list.length})`), el("ul", {}, ...list.map((p) => el("li", {}, p))));
    if (data && view) {
      const chosen = view.selected === null ? undefined : data.windows[view.selected]?.report.id;
      Object.assign(data, fresh);
      const at = data.windows.findIndex((w) => w.report.id === chosen);
      view.renew(full(data));
      view.select(at < 0 ? null : at);
    } else {
      data = fresh;
      view = new View(full(data));
      root.append(...body(data, view));
    }
    answered(data);
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

  /** follow reads one connection to its end. */
  const follow = async (until: AbortSignal): Promise<void> => {
    const fixed = want.from !== undefined && want.to !== undefined;
    const query = fixed ? `?from=${want.from}&to=${want.to}` : `/live?seconds=${want.seconds}`;
    const response = await fetch(path + query, { headers: headers(), signal: until, cache: "no-store" });
    if (response.status === 401) {
      await askForToken(root, state);
      return follow(until);
    }
    if (!response.ok || !response.body) {
      const refused = (await response.json().catch(() => null)) as { error?: string } | null;
      throw new Error(refused?.error ?? `the server answers ${response.status}`);
    }
    if (fixed) {
      open((await response.json()) as Live);
      say("A time in the past.");
      return;
    }
    let text = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("the server has ended the connection");
      text += value;
      for (let cut = text.indexOf("\n\n"); cut >= 0; cut = text.indexOf("\n\n")) {
        const [kind, payload] = event(text.slice(0, cut));
        text = text.slice(cut + 2);
        if (kind === "page") open(JSON.parse(payload) as Live);
        else if (kind === "update" && !more(JSON.parse(payload) as Update)) throw new Error("a part is missing");
        say("Live.");
        pause = 1;
      }
    }
  };
  let pause = 1;
  const run = async (): Promise<void> => {
    const mine = (stop = new AbortController());
    const fixed = want.from !== undefined;
    now.hidden = !fixed;
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
  const again = (): void => {
    stop.abort();
    delete want.from;
    delete want.to;
    want.seconds = Number(span.value);
    history.replaceState(null, "", `#seconds=${want.seconds}`);
    void run();
  };
  span.addEventListener("change", again);
  now.addEventListener("click", again);
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
