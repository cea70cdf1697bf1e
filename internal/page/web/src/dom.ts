// Elements without a framework.

type Child = Node | string | null | undefined | false;

/** el makes an element. A text is always a text: nothing of a program becomes markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  for (const c of children) if (c) e.append(c);
  return e;
}

/** colour is the value of a custom property of the style, in the present theme. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

type Theme = "light" | "dark";

function setTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  document.dispatchEvent(new Event("themechange"));
}

const theme = (): Theme => (document.documentElement.dataset["theme"] === "dark" ? "dark" : "light");

/** followTheme takes the theme of the system, and the light one for paper. */
export function followTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const system = (): void => setTheme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", system);
  let before: Theme = "light";
  addEventListener("beforeprint", () => {
    before = theme();
    setTheme("light");
  });
  addEventListener("afterprint", () => setTheme(before));
  system();
}

/** switchTheme changes between light and dark. */
export const switchTheme = (): void => setTheme(theme() === "dark" ? "light" : "dark");

/** onTheme calls f when the theme changes. */
export const onTheme = (f: () => void): void => document.addEventListener("themechange", f);
