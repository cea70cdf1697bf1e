// The part of the time axis that is shown, and the cursor: all pictures follow them.

import { clock, elapsed } from "./format";

export interface Range {
  min: number;
  max: number;
}

type Listener = () => void;

/** minSpan is the shortest range, in seconds. */
const minSpan = 0.2;

export class View {
  range: Range;
  cursor: number | null = null;
  selected: number | null = null; // index of a window
  private ranged: Listener[] = [];
  private moved: Listener[] = [];
  private chosen: Listener[] = [];

  private renewed: Listener[] = [];

  /** wanted is the span that the reader has chosen. The time that is known may be shorter. */
  wanted: number;

  /** origin is the wall time of second 0 for a page of a machine, in milliseconds; null for a report. */
  constructor(
    public full: Range,
    private origin: number | null = null,
  ) {
    this.range = { ...full };
    this.wanted = full.max - full.min;
  }

  /** time is a time for people: of the clock, or since the start of the run. step says how exact. */
  time(s: number, step: number): string {
    return this.origin === null ? elapsed(s, step) : clock(new Date(this.origin + s * 1000), step);
  }

  /** moment is the time under the cursor, for people. */
  moment(s: number, data: { origin: string }): string {
    if (this.origin !== null) return this.time(s, 1);
    return `${this.time(s, 0.1)} (${new Date(Date.parse(data.origin) + s * 1000).toLocaleTimeString("sv-SE")})`;
  }

  /** tickSpace is the room of a label of the time axis, in CSS pixels. */
  get tickSpace(): number {
    return this.origin === null ? 50 : 90;
  }

  /** onData calls f when the data has changed. */
  onData(f: Listener): void {
    this.renewed.push(f);
  }

  /** follows tells whether the range ends with what is known. */
  get follows(): boolean {
    return this.range.max >= this.full.max - 1e-3; // sums are not exact
  }

  /** renew tells that the data has changed, and the time that can be shown. A range that ended with it moves along. */
  renew(full: Range): void {
    const follows = this.follows;
    const span = this.range.max - this.range.min;
    this.full = full;
    if (follows) this.range = { min: Math.max(full.min, full.max - this.wanted), max: full.max };
    else if (this.range.min < full.min) this.range = { min: full.min, max: Math.min(full.min + span, full.max) };
    for (const f of this.renewed) f();
  }

  onRange(f: Listener): void {
    this.ranged.push(f);
  }

  onCursor(f: Listener): void {
    this.moved.push(f);
  }

  onSelect(f: Listener): void {
    this.chosen.push(f);
  }

  show(min: number, max: number): void {
    this.wanted = Math.max(max - min, minSpan);
    let span = Math.min(this.wanted, this.full.max - this.full.min);
    const middle = (min + max) / 2;
    let from = middle - span / 2;
    from = Math.max(this.full.min, Math.min(from, this.full.max - span));
    span = Math.max(span, 0);
    if (from === this.range.min && from + span === this.range.max) return;
    this.range = { min: from, max: from + span };
    for (const f of this.ranged) f();
  }

  /** zoom changes the span by a factor, and keeps the time at in its place. */
  zoom(factor: number, at = (this.range.min + this.range.max) / 2): void {
    const { min, max } = this.range;
    this.show(at - (at - min) * factor, at + (max - at) * factor);
  }

  /** pan moves by a share of the span. */
  pan(share: number): void {
    const { min, max } = this.range;
    const by = (max - min) * share;
    this.show(min + by, max + by);
  }

  point(at: number | null): void {
    if (at === this.cursor) return;
    this.cursor = at;
    for (const f of this.moved) f();
  }

  select(index: number | null): void {
    this.selected = index;
    for (const f of this.chosen) f();
  }
}
