// Debian's Chromium without its windows, driven by Playwright: with them (`--headless` of `chromium`) the suites take twice the
// processor time. It ends with this process, however that ends.
import { chromium } from 'playwright-core';

const EXECUTABLE = process.env.CHROME_PATH ?? '/usr/bin/chromium-headless-shell';
const FLAGS = [
  '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync',
];

export const launch = (...flags) =>
  chromium.launch({ executablePath: EXECUTABLE, headless: true, chromiumSandbox: false, args: [...FLAGS, ...flags] });

/** A page that has settled: style, script, fonts and pictures are there. */
export async function open(page, url) {
  const answer = await page.goto(url, { waitUntil: 'load' });
  await settle(page);
  return answer;
}

export async function settle(page) {
  await page.waitForLoadState('load');
  await page.evaluate(() => document.fonts.ready.then(() => {}));
}

/** Nothing, unless the page is wider than the screen: then its width, and the elements that reach beyond the screen. */
export const sideways = (page) =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const holder = (element) => (getComputedStyle(element).position === 'absolute' ? element.offsetParent : element.parentElement);
    const scrolls = (element) => element && element !== document.body && (getComputedStyle(element).overflowX !== 'visible' || scrolls(holder(element)));
    const beyond = (element) => element.getBoundingClientRect().right > clientWidth + 1 && !scrolls(holder(element));
    return [`${scrollWidth} pixels`, ...[...document.querySelectorAll('body *')].filter(beyond).map((element) => element.outerHTML.slice(0, 100))];
  });
