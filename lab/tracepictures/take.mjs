// Takes a picture of a trace in Jaeger's page: node take.mjs URL OUT HEIGHT [NAME OF A SPAN TO OPEN]
import { createRequire } from "node:module";

const { chromium } = createRequire(new URL("../page/", import.meta.url))("@playwright/test");
const [url, out, height, open] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1360, height: Number(height) } });
await page.goto(url);
await page.waitForSelector(".span-row");
if (open) await page.locator(`.span-name:has-text("${open}")`).first().click();
await page.mouse.move(0, 0);
await page.waitForTimeout(1000); // the page animates
await page.screenshot({ path: out });
await browser.close();
