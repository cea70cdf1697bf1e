// Takes a picture of the page of a machine: node page.mjs URL OUT
import { createRequire } from "node:module";

const { chromium } = createRequire(new URL("../page/", import.meta.url))("@playwright/test");
const [url, out] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1100, height: 1000 } });
await page.goto(url);
await page.waitForSelector("figure");
await page.waitForTimeout(3000); // some updates
await page.screenshot({ path: out });
await browser.close();
