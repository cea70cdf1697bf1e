// The ledger as a bar, with its numbers below: colour is never the only sign.

import { type Report, type Share, ledger } from "./data";
import { el } from "./dom";
import { duration } from "./format";

const percentOf = (p: Share): string => `${p.percent} %`;

export function ledgerBar(r: Report): HTMLElement | null {
  const parts = ledger(r);
  if (parts.length === 0) return null;
  const text = parts.map((p) => `${p.name} ${percentOf(p)}`).join(", ");
  const bar = el("div", { class: "bar", role: "img", "aria-label": text });
  const key = el("ul", { class: "key" });
  for (const p of parts) {
    if (p.ratio > 0) {
      const piece = el("span", { class: `piece ${p.part}` }, p.ratio >= 0.06 ? percentOf(p) : null);
      piece.style.flexGrow = String(p.ratio);
      bar.append(piece);
    }
    key.append(
      el(
        "li",
        {},
        el("span", { class: `swatch ${p.part}`, "aria-hidden": "true" }),
        `${p.name} ${percentOf(p)} (${duration(p.seconds)})`,
      ),
    );
  }
  return el("div", { class: "ledger" }, bar, key);
}
