// usage: node desk.mjs BASE_URL DESK_URL
// The makers' dashboard after a few visits: axe-core finds nothing, nothing is wider than a phone, and the console is silent.
import { launch, open } from './chromium.mjs';
import { judge } from './judge.mjs';

const [, , base, desk] = process.argv;
const json = (path, body) =>
  fetch(base + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
for (const source of ['hn', 'blog', 'a-source-with-a-name-of-32-letters'.slice(0, 32)])
  await json('/api/download', { email: `${source.slice(0, 8)}@example.com`, updates: source === 'hn', source });
await json('/api/contact', { email: 'ada@example.com', message: 'Hello' });
await json('/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'about_service' } });
await fetch(`${base}/releases/Troupe-1.4.0.dmg`).then((answer) => answer.arrayBuffer());

const browser = await launch();
const findings = [];
const context = await browser.newContext({ reducedMotion: 'reduce' });
for (const path of ['/', '/?by=month']) {
  const page = await context.newPage();
  page.on('console', (message) => findings.push(`${path}: the console says ${message.text()}`));
  await open(page, desk + path);
  await page.evaluate(() => document.querySelectorAll('details').forEach((details) => (details.open = true)));
  findings.push(...(await judge(page, path)));
  await page.setViewportSize({ width: 320, height: 800 });
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > 320) findings.push(`${path}: it is ${width} pixels wide on a phone of 320`);
  await page.close();
}
await browser.close();
if (findings.length) {
  console.log(findings.join('\n'));
  process.exitCode = 1;
}
