// The part of the time axis that is shown, and the cursor: all pictures follow them.

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

  constructor(public full: Range) {
    this.range = { ...full };
  }

  /** onData calls f when the data has changed. */
  onData(f: Listener): void {
    this.renewed.push(f);
  }

  /** renew tells that the data has changed and covers another time. A range that ended with the old one moves along. */
  renew(full: Range): void {
    const span = this.range.max - this.range.min;
    const whole = this.range.min <= this.full.min && this.range.max >= this.full.max;
    const follows = this.range.max >= this.full.max;
    this.full = full;
    if (whole) this.range = { ...full };
    else if (follows) this.range = { min: Math.max(full.min, full.max - span), max: full.max };
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
    let span = Math.min(Math.max(max - min, minSpan), this.full.max - this.full.min);
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
