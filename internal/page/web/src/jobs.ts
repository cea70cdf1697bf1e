// The jobs of GPUs: whose hours went where, in the last day or in the time in the past that is shown.

import { el } from "./dom";
import { hours, local, percent } from "./format";

const path = "/v1/jobs";
const day = 24 * 3600; // seconds
const every = 60_000; // milliseconds between two requests while the present is shown
const firstRows = 20;
const moreRows = 100;

interface Times {
  allocated: number;
  busy: number;
  storage: number;
  cpu: number;
  other: number;
  unused: number;
}

interface Job extends Times {
  id: string;
  name: string;
  user?: string;
  pid?: number;
  attributes?: Record<string, string>;
  running: boolean;
  gpus: { id: string }[];
  fix?: { saves: number; says: string };
}

interface Jobs {
  since: string;
  problem?: string;
  jobs: Job[];
  gpus: { id: string; idle: number }[];
}

/** lost is the time in which GPUs did nothing: of a job without one, none. */
const lost = (j: Job): number => (j.gpus.length ? j.storage + j.cpu + j.other : 0);
const total = (j: Job): number => j.busy + j.storage + j.cpu + j.other;

/** shown is the name of a job for people, as window.ShownName: the hash of code on a command line says nothing. */
const shown = (name: string): string => name.replace(/^([A-Za-z]+ -[A-Za-z]*[ce]) [0-9a-f]{8}$/, "$1");

/** title is a job's name, with its process number where another job has the same name, and whether it has ended. */
const title = (j: Job, all: Job[]): string => {
  const name = shown(j.name);
  const shared = j.pid && all.some((other) => other.id !== j.id && shown(other.name) === name);
  return `${shared ? `${name} ${j.pid}` : name}${j.running ? "" : ", ended"}`;
};
const owner = (j: Job): string => j.attributes?.["k8s.pod.name"] ?? j.user ?? "";

/** part is a time of a job with its share of all. */
const part = (j: Job, seconds: number): string => (seconds > 0 ? `${hours(seconds)}, ${percent(seconds / total(j))}` : "-");

interface Column {
  name: string;
  text: (j: Job, all: Job[]) => string;
  key: (j: Job) => number | string;
}

const time = (name: string, seconds: (j: Job) => number): Column => ({ name, text: (j) => part(j, seconds(j)), key: seconds });

const columns: Column[] = [
  { name: "Job", text: title, key: (j) => j.name },
  { name: "User or pod", text: owner, key: owner },
  { name: "GPUs", text: (j) => (j.gpus.length ? String(j.gpus.length) : "-"), key: (j) => j.gpus.length },
  { name: "Held", text: (j) => (j.gpus.length ? hours(j.allocated) : "-"), key: (j) => j.allocated },
  time("Busy", (j) => j.busy),
  time("Lost", lost),
  time("To storage", (j) => j.storage),
  time("To the CPU", (j) => j.cpu),
  time("To other", (j) => j.other),
  time("Unused", (j) => j.unused),
  { name: "Best fix", text: (j) => j.fix?.says ?? "-", key: (j) => j.fix?.saves ?? 0 },
];
const byLoss = columns.findIndex((c) => c.name === "Lost");

/** JobTable is the list, and how to choose its time: from one moment to another in Unix seconds, or else the last day. */
interface JobTable {
  section: HTMLElement;
  show: (from?: number, to?: number) => void;
}

/** jobTable asks the server with these headers. The list is hidden where the server knows of no GPU. */
export function jobTable(headers: () => Record<string, string>): JobTable {
  const span = el("p", { class: "muted", role: "status" });
  const body = el("tbody");
  const free = el("ul", { class: "free" });
  const more = el("button", { type: "button", hidden: "" }, "Show more");
  let all: Jobs | null = null;
  let most = firstRows;
  let sort = { column: byLoss, down: true };

  const heads = columns.map((c, i) => {
    const button = el("button", { type: "button" }, c.name);
    button.addEventListener("click", () => {
      sort = { column: i, down: sort.column === i ? !sort.down : i > 1 };
      fill();
    });
    return el("th", { scope: "col" }, button);
  });
  const scroll = el("div", { class: "scroll" }, el("table", { class: "sortable" }, el("thead", {}, el("tr", {}, ...heads)), body));
  const note = el(
    "p",
    { class: "muted help" },
    "A job held a GPU while it had memory on it. Lost is the time in which the GPU did nothing: to storage, to the CPU, or to other reasons. Of these, unused are five minutes or longer without any work. Of a job without a GPU, the program's own time is divided: to storage, on the CPU, or other.",
  );
  const section = el("section", { class: "jobs", "aria-label": "Jobs", hidden: "" }, el("h2", {}, "Jobs"), span, note, scroll, more, free);

  const sorted = (list: Job[]): Job[] => {
    const key = columns[sort.column]?.key ?? lost;
    const collator = new Intl.Collator(undefined, { numeric: true });
    return [...list].sort((a, b) => {
      const x = key(a);
      const y = key(b);
      const order = typeof x === "number" && typeof y === "number" ? x - y : collator.compare(String(x), String(y));
      return sort.down ? -order : order;
    });
  };
  const fill = (): void => {
    const list = all?.jobs ?? [];
    heads.forEach((h, i) => {
      if (i === sort.column) h.setAttribute("aria-sort", sort.down ? "descending" : "ascending");
      else h.removeAttribute("aria-sort");
    });
    const row = (j: Job): HTMLElement =>
      el("tr", {}, el("th", { scope: "row" }, columns[0]?.text(j, list) ?? ""), ...columns.slice(1).map((c) => el("td", {}, c.text(j, list))));
    body.replaceChildren(...sorted(list).slice(0, most).map(row));
    more.hidden = list.length <= most;
    more.textContent = `Show ${Math.min(moreRows, list.length - most)} more`;
    scroll.hidden = note.hidden = list.length === 0;
    const idle = (all?.gpus ?? []).filter((g) => g.idle >= 60);
    free.replaceChildren(...idle.map((g) => el("li", {}, `${g.id}: held by no process for ${hours(g.idle)}.`)));
  };
  more.addEventListener("click", () => {
    most += moreRows;
    fill();
  });
  addEventListener("beforeprint", () => {
    most = all?.jobs.length ?? most;
    fill();
  });

  /** describe says which time the list is of, and what is missing. */
  const describe = (answer: Jobs, from: number, to?: number): string => {
    const count = answer.jobs.length === 1 ? "1 job" : `${answer.jobs.length} jobs`;
    const parts = [to === undefined ? `${count} in the last 24 hours.` : `${count} from ${local(new Date(from * 1000))} to ${local(new Date(to * 1000))}.`];
    const since = Date.parse(answer.since) / 1000;
    if (since > from + 60) parts.push(`Nothing is known from before ${local(new Date(since * 1000))}.`);
    if (answer.problem) parts.push(`${answer.problem}.`);
    return parts.join(" ");
  };

  let asking = new AbortController();
  let timer: number | undefined;
  const ask = async (from?: number, to?: number): Promise<void> => {
    asking.abort();
    const mine = (asking = new AbortController());
    const since = Math.floor(from ?? Date.now() / 1000 - day);
    const query = to === undefined ? `?since=${since}` : `?since=${since}&until=${Math.ceil(to)}`;
    try {
      const response = await fetch(path + query, { headers: headers(), signal: mine.signal, cache: "no-store" });
      if (!response.ok) throw new Error(`the server answers ${response.status}`);
      const answer = (await response.json()) as Jobs;
      all = answer;
      section.hidden = answer.jobs.length === 0 && answer.gpus.length === 0;
      const says = describe(answer, since, to);
      if (span.textContent !== says) span.textContent = says;
      fill();
    } catch (e) {
      if (!mine.signal.aborted && all) span.textContent = `Not up to date: ${e instanceof Error ? e.message : String(e)}.`;
    }
  };
  const show = (from?: number, to?: number): void => {
    clearInterval(timer);
    void ask(from, to);
    if (to !== undefined) return;
    timer = window.setInterval(() => {
      if (!document.hidden) void ask();
    }, every);
  };
  return { section, show };
}
