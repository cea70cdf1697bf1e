// The times that a live page can show, and how they are placed on its time axis.

import type { Live, Update } from "./data";
import type { Range } from "./view";

/** longest is the longest time that the server shows, in seconds. */
export const longest = 7 * 24 * 3600;

/** spans are the times up to now that have a button, in seconds. */
export const spans: [number, string][] = [
  [600, "10 min"],
  [3600, "1 h"],
  [6 * 3600, "6 h"],
  [24 * 3600, "24 h"],
  [longest, "7 d"],
];

/** spanFor is the shortest of them that has room for a span. */
export function spanFor(seconds: number): number {
  return spans.find(([s]) => s + 5 >= seconds)?.[0] ?? longest;
}

/** enough is how many points a picture needs before a finer one is loaded. */
const enough = 300;

/** covers tells whether the curves have a range, in as much detail as there is: a second for an hour, else ten. */
export function covers(data: Live, range: Range): boolean {
  const { start_s: start, step_s: step } = data.curves;
  const loaded = range.min >= start - step && (range.max <= data.now_s + step || data.now_s >= data.latest_s - step);
  const finest = range.min >= data.latest_s - 3600 ? 1 : 10;
  return loaded && (step <= finest || (range.max - range.min) / step >= enough);
}

/** place moves what a server has sent onto the page's time axis, whose second 0 is at a time in milliseconds. */
export function place(data: Live, zero: number): Live {
  const by = (Date.parse(data.origin) - zero) / 1000;
  data.origin = new Date(zero).toISOString();
  data.now_s += by;
  data.curves.start_s += by;
  data.oldest_s = data.oldest_s === undefined ? data.curves.start_s : data.oldest_s + by;
  data.latest_s = data.latest_s === undefined ? data.now_s : data.latest_s + by;
  if (data.last) data.last.end_s += by;
  for (const w of data.windows) w.start_s += by;
  for (const e of data.events ?? []) e.at_s += by;
  return data;
}

/** placeUpdate does the same with an update. */
export function placeUpdate(update: Update, by: number): Update {
  update.now_s += by;
  update.curves.start_s += by;
  for (const w of update.windows) w.start_s += by;
  for (const e of update.events ?? []) e.at_s += by;
  return update;
}
