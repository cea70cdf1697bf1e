// The HTML report in a real browser, from files, as people open it.
import AxeBuilder from "@axe-core/playwright";
import { expect, test, type Page } from "@playwright/test";
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const pages = process.env.PAGES ?? "../../build/pages";

async function open(page: Page, name: string): Promise<string[]> {
  const problems: string[] = [];
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") problems.push(m.text());
  });
  page.on("pageerror", (e) => problems.push(String(e)));
  page.on("request", (r) => {
    if (!r.url().startsWith("file:") && !r.url().startsWith("data:")) problems.push(`request: ${r.url()}`);
  });
  await page.goto(pathToFileURL(path.resolve(pages, name)).href);
  await expect(page.locator("h1")).toBeVisible();
  return problems;
}

interface Data {
  duration_s: number;
  windows: { label: string; start_s: number; report: { finding: string; slow: boolean; verdict: string } }[];
  curves: { start_s: number; step_s: number; panels: { title: string; unit: string; lines: { values: number[] }[] }[] };
}

/** dataOf is the data of a page, read from the file and not through the script. */
function dataOf(name: string): Data {
  const text = readFileSync(path.resolve(pages, name), "utf8");
  const json = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(text)?.[1];
  return JSON.parse(json ?? "") as Data;
}

/** figure is the panel with a title. */
const figure = (page: Page, title: string) => page.locator("figure", { has: page.getByText(title, { exact: true }) });

test("a recording of a GPU opens without an error or a request", async ({ page }) => {
  const problems = await open(page, "gpu.html");
  await expect(page.locator(".answer")).toContainText("The GPU was busy");
  await expect(page.locator("figure")).not.toHaveCount(0);
  expect(problems).toEqual([]);
});

test("the readout at a time is the value of the data there", async ({ page }) => {
  await open(page, "gpu.html");
  const data = dataOf("gpu.html");
  const panel = data.curves.panels.find((p) => p.title === "GPU");
  const over = figure(page, "GPU").locator(".u-over");
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  if (!box || !panel) throw new Error("no panel of the GPU");
  const share = 0.5;
  await page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  const index = Math.round((data.duration_s * share - data.curves.start_s) / data.curves.step_s - 0.5);
  // The middle of the panel may lie on the edge of two intervals.
  const near = [index - 1, index, index + 1].map((i) => `${Math.round(panel.lines[0]?.values[i] ?? NaN)} %`);
  const text = await figure(page, "GPU").locator(".readout .item").first().textContent();
  expect(near).toContain(/(\d+ %)$/.exec(text ?? "")?.[1]);
  await expect(figure(page, "Disk throughput").locator("time")).toHaveCount(1); // one cursor for all
});

test("dragging zooms all curves, and a double click shows everything again", async ({ page }) => {
  await open(page, "gpu.html");
  const over = figure(page, "Disk throughput").locator(".u-over");
  await over.scrollIntoViewIfNeeded();
  const before = await figure(page, "GPU").screenshot();
  const box = await over.boundingBox();
  if (!box) throw new Error("no panel of the disks");
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 5 });
  await page.mouse.up();
  await page.mouse.move(0, 0);
  expect((await figure(page, "GPU").screenshot()).equals(before)).toBe(false);
  await over.dblclick();
  await page.mouse.move(0, 0);
  expect((await figure(page, "GPU").screenshot()).equals(before)).toBe(true);
});

test("a click on a window tells why it took its time", async ({ page }) => {
  await open(page, "many.html");
  const data = dataOf("many.html");
  const last = data.windows.at(-1);
  await page.getByRole("searchbox").fill(last?.label ?? "");
  await page.getByRole("button", { name: last?.label ?? "", exact: true }).click();
  await expect(page.locator(".detail h2")).toContainText(last?.label ?? "");
  await expect(page.locator(".detail .finding")).toHaveText(last?.report.finding ?? "");
  const lanes = page.locator("canvas.lanes");
  await page.keyboard.press("Escape");
  await page.getByRole("searchbox").fill("");
  await lanes.click({ position: { x: 300, y: 10 } });
  await expect(page.locator(".detail h2")).toBeVisible();
});

test("keys zoom, move and select", async ({ page }) => {
  await open(page, "many.html");
  const data = dataOf("many.html");
  const slow = data.windows.filter((w) => w.report.slow);
  await page.locator("canvas.lanes").focus();
  await page.keyboard.press("Escape");
  await page.keyboard.press("s");
  await expect(page.locator(".detail h2")).toContainText(slow[0]?.label ?? "none is slow");
  await page.keyboard.press("n");
  const after = data.windows[data.windows.indexOf(slow[0]!) + 1];
  await expect(page.locator(".detail h2")).toContainText(after?.label ?? "");
  const before = await page.locator("canvas.lanes").screenshot();
  await page.keyboard.press("+");
  expect((await page.locator("canvas.lanes").screenshot()).equals(before)).toBe(false);
});

test("the table sorts and filters", async ({ page }) => {
  await open(page, "many.html");
  const data = dataOf("many.html");
  await page.getByLabel("slow ones only").check();
  const slow = data.windows.filter((w) => w.report.slow).length;
  await expect(page.getByRole("status")).toHaveText(`${slow} of ${data.windows.length}`);
  await expect(page.locator(".windows tbody tr")).toHaveCount(Math.min(slow, 200));
  await page.getByLabel("slow ones only").uncheck();
  await page.getByRole("button", { name: "Time", exact: true }).click();
  await expect(page.locator("th[aria-sort=descending]")).toHaveText("Time");
  const longest = Math.max(...data.windows.map((w) => (w.report as { duration_s?: number }).duration_s ?? 0));
  const first = data.windows.find((w) => (w.report as { duration_s?: number }).duration_s === longest);
  await expect(page.locator(".windows tbody tr").first()).toContainText(first?.label ?? "");
});

test("5,000 windows and 100,000 points are drawn, and the time for it is printed", async ({ page }) => {
  await open(page, "many.html");
  const data = dataOf("many.html");
  expect(data.windows.length).toBe(5000);
  const points = data.curves.panels.reduce((n, p) => n + p.lines.reduce((m, l) => m + l.values.length, 0), 0);
  expect(points).toBeGreaterThanOrEqual(100_000);
  const scripting = await page.evaluate(() => performance.timing.domContentLoadedEventEnd - performance.timing.responseEnd);
  test.info().annotations.push({ type: "measured", description: `${scripting} ms until the page is built` });
  console.log(`many.html: ${scripting} ms until the page is built`);
});

for (const scheme of ["light", "dark"] as const) {
  test(`nothing for axe to complain about in ${scheme} colours`, async ({ page }) => {
    await page.emulateMedia({ colorScheme: scheme });
    await open(page, "gpu.html");
    const result = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21aa"]).analyze();
    expect(result.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`)).toEqual([]);
  });
}

for (const width of [320, 768, 1280, 2560]) {
  test(`nothing is cut off at ${width} px`, async ({ page }) => {
    await page.setViewportSize({ width, height: 900 });
    await open(page, "gpu.html");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(wide).toBeLessThanOrEqual(0);
    const canvas = await page.locator("figure canvas").first().boundingBox();
    expect(canvas?.width).toBeGreaterThan(width < 400 ? 200 : 400);
  });
}

test("hostile texts stay texts", async ({ page }) => {
  const problems = await open(page, "hostile.html");
  await expect(page.locator("h1")).toContainText("<script>alert(1)</script>");
  await expect(page.locator("img")).toHaveCount(0);
  expect(problems).toEqual([]);
});

test("it looks as it did", async ({ page }) => {
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await open(page, "gpu.html");
    await expect(page).toHaveScreenshot(`gpu-${scheme}.png`, { fullPage: true });
  }
});

for (const colorScheme of ["light", "dark"] as const) {
  test(`a comparison has no barrier that axe finds in ${colorScheme} colours, and fits 320 px`, async ({ page }) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 320, height: 800 });
    const problems = await open(page, "compare.html");
    await expect(page.locator(".answer")).toContainText("B is 14x faster");
    await expect(page.locator("svg")).toHaveCount(7);
    const found = await new AxeBuilder({ page }).analyze();
    expect(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(back).toBe(colorScheme === "dark" ? "rgb(20, 23, 26)" : "rgb(255, 255, 255)");
    expect(problems).toEqual([]);
  });
}
