// usage: node dashboard.mjs BASE_URL OPS_URL
// The dashboard after a few visits: axe-core finds nothing, nothing overflows a phone even at large text sizes, the parts
// of the charts have enough contrast, and the console is silent.
import { launch, open } from './chromium.mjs';
import { judge } from './judge.mjs';

const [, , base, dashboard] = process.argv;
const json = (path, body) =>
  fetch(base + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
const SOURCES = ['hn', 'blog', 'a-source-with-a-name-of-32-letters'.slice(0, 32), '   ', '\u200b', 'a\u0001b', '\u202elive'];
for (const [place, source] of SOURCES.entries())
  await json('/api/download', { email: `visitor-${place}@example.com`, updates: source === 'hn', source });
await json('/api/waitlist', { email: 'ada@example.com', source: 'an agent' });
await json('/api/contact', { email: 'ada@example.com', message: 'Hello' });
await json('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'about_service' } });
await fetch(`${base}/releases/Troupe-1.4.0.dmg`).then((answer) => answer.arrayBuffer());

const findings = [];

/** The page in a new context, once it has settled, with its tables opened. */
async function visit(browser, path, look) {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...look });
  const page = await context.newPage();
  page.on('console', (message) => findings.push(`${path}: the console says ${message.text()}`));
  await open(page, dashboard + path);
  await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
  return page;
}

async function widths(page, name, ...sizes) {
  for (const width of sizes) {
    await page.setViewportSize({ width, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) findings.push(`${name}: it is ${wide} pixels wide on a screen of ${width}`);
  }
}

/** How far two colours are apart, as WCAG has it, painted first so that every notation will do. */
const contrasts = (page, pairs) =>
  page.evaluate((pairs) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const luminance = ([selector, property]) => {
      canvas.fillStyle = getComputedStyle(document.querySelector(selector))[property];
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((part) =>
        part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return pairs.map((pair) => {
      const [darker, lighter] = pair.map(luminance).sort((a, b) => a - b);
      return (lighter + 0.05) / (darker + 0.05);
    });
  }, pairs);

const paper = ['body', 'backgroundColor'];
const outer = ['.bar', 'fill'];
const inner = ['.bar.inner', 'fill'];
const APART = [
  [paper, outer], [outer, inner], [paper, ['.running .bar', 'stroke']], [paper, ['.bar-row rect', 'fill']],
];

let browser = await launch();
for (const path of ['/', '/?by=month']) {
  const page = await visit(browser, path);
  findings.push(...(await judge(page, path)));
  await widths(page, path, 320);
}
for (const look of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { forcedColors: 'active' }]) {
  const page = await visit(browser, '/', look);
  // In forced colours one bar is an outline: its edge is what has to stand out.
  const pairs = look.forcedColors ? [[paper, ['.bar', 'stroke']], [outer, inner]] : APART;
  for (const [place, contrast] of (await contrasts(page, pairs)).entries())
    if (contrast < 3) findings.push(`${JSON.stringify(look)}: ${pairs[place].join(' and ')} are ${contrast.toFixed(2)} to 1 apart`);
}
await browser.close();

for (const letters of [24, 32]) {
  browser = await launch(`--blink-settings=defaultFontSize=${letters}`);
  const page = await visit(browser, '/');
  await widths(page, `letters of ${letters} pixels`, 320, 375, 768);
  await page.setViewportSize({ width: 375, height: 800 });
  const columns = await page.evaluate(() => new Set([...document.querySelectorAll('.tiles > div')].map((tile) => tile.offsetLeft)).size);
  if (columns > 1) findings.push(`letters of ${letters} pixels: ${columns} tiles beside each other on a phone`);
  await browser.close();
}
if (findings.length) {
  console.log(findings.join('\n'));
  process.exitCode = 1;
}
