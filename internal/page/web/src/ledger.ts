// The ledger as a bar, with its numbers below: colour is never the only sign.

import { type Report, ledger } from "./data";
import { el } from "./dom";
import { duration, percent } from "./format";

export function ledgerBar(r: Report): HTMLElement | null {
  const parts = ledger(r);
  if (parts.length === 0) return null;
  const text = parts.map((p) => `${p.name} ${percent(p.ratio)}`).join(", ");
  const bar = el("div", { class: "bar", role: "img", "aria-label": text });
  const key = el("ul", { class: "key" });
  for (const p of parts) {
    if (p.ratio > 0) {
      const piece = el("span", { class: `piece ${p.part}` }, p.ratio >= 0.06 ? percent(p.ratio) : null);
      piece.style.flexGrow = String(p.ratio);
      bar.append(piece);
    }
    key.append(
      el(
        "li",
        {},
        el("span", { class: `swatch ${p.part}`, "aria-hidden": "true" }),
        `${p.name} ${percent(p.ratio)} (${duration(p.seconds)})`,
      ),
    );
  }
  return el("div", { class: "ledger" }, bar, key);
}
