import { defineConfig } from "@playwright/test";

// CHROMIUM is the browser. PAGES is a folder with the pages that page_test.go of package agent writes.
export default defineConfig({
  testDir: ".",
  timeout: 30_000,
  workers: 1,
  reporter: [["list"]],
  snapshotPathTemplate: "goldens/{arg}{ext}",
  expect: { toHaveScreenshot: { maxDiffPixelRatio: 0.02, animations: "disabled" } },
  outputDir: "../../build/page-test",
  use: {
    browserName: "chromium",
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
    locale: "en-GB",
    timezoneId: "UTC",
    viewport: { width: 1280, height: 900 },
  },
});
