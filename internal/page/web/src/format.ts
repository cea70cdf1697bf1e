// Numbers as people read them.

function digits(x: number): string {
  const a = Math.abs(x);
  return a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
}

export function duration(s: number): string {
  const a = Math.abs(s);
  if (a < 5e-7) return "0 s";
  if (a < 0.9995e-3) return `${digits(s * 1e6)} µs`;
  if (a < 0.9995) return `${digits(s * 1e3)} ms`;
  if (a < 120) return `${digits(s)} s`;
  if (a < 7200) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

/** hours is a time of one GPU or of several: seconds, minutes or hours alone. */
export function hours(s: number): string {
  if (s < 99.5) return `${Math.round(s)} s`;
  if (s < 99.5 * 60) return `${Math.round(s / 60)} min`;
  return `${(s / 3600).toFixed(s < 99.5 * 3600 ? 1 : 0)} h`;
}

export function bytes(b: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  while (Math.abs(b) >= 1024 && i < units.length - 1) {
    b /= 1024;
    i++;
  }
  return `${i === 0 ? b.toFixed(0) : digits(b)} ${units[i]}`;
}

export function percent(ratio: number): string {
  return `${Math.round(ratio * 100)} %`;
}

export function times(x: number): string {
  return `${x.toFixed(x >= 10 ? 0 : 2)}x`;
}

/** value is a number of a curve, with its unit. */
export function value(x: number | null | undefined, unit: string): string {
  if (x === null || x === undefined) return "-";
  switch (unit) {
    case "s":
      return duration(x);
    case "B":
      return bytes(x);
    case "B/s":
      return `${bytes(x)}/s`;
    case "%":
      return `${Math.round(x)} %`;
    default:
      return unit ? `${digits(x)} ${unit}` : digits(x);
  }
}

/** clock is a time of day, with as many digits as a step needs, and the day of the week if it is not today. */
export function clock(date: Date, step: number): string {
  const two = (n: number): string => String(n).padStart(2, "0");
  let text = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (step < 60) text += `:${two(date.getSeconds())}`;
  if (step < 1) text += `.${Math.floor(date.getMilliseconds() / 100)}`;
  const today = date.toDateString() === new Date().toDateString();
  return today ? text : `${date.toLocaleDateString("en", { weekday: "short" })} ${text}`;
}

/** local is a date with its time, in the order and the 24 hours of the terminal's output. */
export function local(date: Date): string {
  return date.toLocaleString("sv-SE");
}

/** elapsed is a time since the start of the run. */
export function elapsed(s: number, step: number): string {
  const sign = s < 0 ? "-" : "";
  s = Math.abs(s);
  const h = Math.floor(s / 3600);
  const m = Math.floor((s % 3600) / 60);
  const rest = s % 60;
  const places = step < 0.01 ? 3 : step < 0.1 ? 2 : step < 1 ? 1 : 0;
  const secs = rest.toFixed(places).padStart(places ? places + 3 : 2, "0");
  return h ? `${sign}${h}:${String(m).padStart(2, "0")}:${secs}` : `${sign}${m}:${secs}`;
}
