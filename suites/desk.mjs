// usage: node desk.mjs FOLDER SMALL_DESK FULL_DESK EMPTY_DESK PUBLISHING_DESK
// The desks are what functions of these names in desk-service.mjs give, as JSON.
// Every page and state of the desk: axe-core finds nothing, nothing is wider than a phone, even with large letters, the console is
// silent, nothing comes from another host, and pages are light. Their HTML is written to FOLDER.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { launch, sideways } from './chromium.mjs';
import { deskStates, emptyDeskStates, fullDeskStates, publishingDeskStates } from './desk-states.mjs';
import { judge } from './judge.mjs';

const [, , folder, ...json] = process.argv;
const desks = json.map((desk) => JSON.parse(desk));
const [small, full, empty, publishing] = desks;
const WORKERS = 2;
const PATIENCE = 10_000;
const PAGE_BUDGET = 30_000; // bytes of HTML and CSS, compressed with brotli
const SCRIPT_BUDGET = 20_000; // bytes of JavaScript, not compressed
/** What axe-core is not asked about: the rows of a list are alike, and the first ones try most. */
const MORE_ROWS = ['.rows > li:nth-child(n+9)'];
const STATUS = {
  'sign-in-link-used': 422, 'address-invalid': 422, 'not-found': 404, 'session-ended': 403, 'from-elsewhere': 403,
  'draft-send-not-yet': 422, 'releases-refused-plain': 422,
};
/** Of what a page asks for while it is shown. */
const STATUS_IN_PLACE = { 'releases-refused': 409 };

const findings = [];
const scripts = new Map();
let heaviest = 0;

/** The bytes of a style or a script, and how many they are with brotli, asked for once. */
const assets = new Map();
const asset = ({ href }) => assets.get(href) ?? assets.set(href, weigh(href)).get(href);
async function weigh(url) {
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  return { plain: bytes.length, compressed: brotliCompressSync(bytes).length };
}

/** Notes what a browser says and asks for. Gives the name of what it shows, and what came since that was set. */
function watch(context) {
  const shown = { name: '', answers: [] };
  context.on('response', (answer) => shown.answers.push(answer));
  context.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== 'data:' && !desks.some((desk) => desk.origin === origin)) findings.push(`${shown.name}: a request to another host: ${request.url()}`);
  });
  context.on('console', (message) => {
    const status = STATUS[shown.name] ?? STATUS_IN_PLACE[shown.name];
    const expected = status && message.text().includes(`the server responded with a status of ${status}`);
    if (!expected) findings.push(`${shown.name}: the console says ${message.text()}`);
  });
  context.on('weberror', (error) => findings.push(`${shown.name}: ${error.error().message}`));
  return shown;
}

/** Judges the status and the weight of the page that came last; gives its HTML. */
async function htmlOf({ name, answers }) {
  const document = answers.findLast((answer) => answer.request().isNavigationRequest() && !answer.frame().parentFrame());
  if (document.status() !== (STATUS[name] ?? 200)) findings.push(`${name}: ${document.status()} for ${document.url()}`);
  const html = await document.text();
  const addresses = (pattern) => [...html.matchAll(pattern)].map(([, path]) => new URL(path, document.url()));
  const [style] = addresses(/<link rel="stylesheet" href="([^"]+)"/g);
  const bytes = brotliCompressSync(html).length + (await asset(style)).compressed;
  for (const script of addresses(/<script\b[^>]* src="([^"]+)"/g)) scripts.set(script.pathname, (await asset(script)).plain);
  heaviest = Math.max(heaviest, bytes);
  if (bytes > PAGE_BUDGET) findings.push(`${name}: HTML and CSS are ${bytes} bytes, more than ${PAGE_BUDGET}`);
  return html;
}

async function expectNoSideways(page, name) {
  const wide = await sideways(page);
  if (wide.length) findings.push(`${name}: wider than the screen: ${wide.slice(0, 3).join(' ')}`);
}

/** What kinds of elements a page is made of: axe-core is asked once about pages that differ in their texts alone. */
const judged = new Set();
const kinds = (page) =>
  page.evaluate(() => {
    const seen = ['class', 'role', 'type', 'aria-current', 'aria-invalid'];
    const kind = (element) => `${element.localName} ${seen.map((name) => element.getAttribute(name) ?? '').join(' ')}`;
    const path = (element) => (element ? `${path(element.parentElement)} > ${kind(element)}` : '');
    return [...new Set([...document.querySelectorAll('*')].map(path))].sort().join('\n');
  });

async function visit(page, shown, reach) {
  const { name } = shown;
  await reach(page);
  // What visitors wrote is shown as it is, and may have spaces at the ends of lines.
  await writeFile(join(folder, `${name}.html`), (await htmlOf(shown)).replace(/ +$/gm, ''));
  const elements = await kinds(page);
  if (!judged.has(elements)) {
    judged.add(elements);
    findings.push(...(await judge(page, name, MORE_ROWS)));
  }
  await page.setViewportSize({ width: 320, height: 800 });
  await expectNoSideways(page, name);
  const session = await page.context().newCDPSession(page);
  await session.send('Page.setFontSizes', { fontSizes: { standard: 32 } });
  await expectNoSideways(page, `${name}, letters of 32 pixels`);
  await session.send('Page.setFontSizes', { fontSizes: { standard: 16 } });
  await session.detach();
}

await mkdir(folder, { recursive: true });
const browser = await launch();
const waiting = Object.entries({ ...fullDeskStates(full), ...deskStates(small), ...emptyDeskStates(empty), ...publishingDeskStates(publishing) });
const count = waiting.length;
await Promise.all(
  Array.from({ length: WORKERS }, async () => {
    const context = await browser.newContext({ reducedMotion: 'reduce' });
    context.setDefaultTimeout(PATIENCE);
    const shown = watch(context);
    const page = await context.newPage();
    for (let state = waiting.shift(); state; state = waiting.shift()) {
      Object.assign(shown, { name: state[0], answers: [] });
      await visit(page, shown, state[1]).catch((error) => findings.push(`${state[0]}: ${error.message}`));
    }
  }),
);
await browser.close();
const script = [...scripts.values()].reduce((sum, bytes) => sum + bytes, 0);
if (!script || script > SCRIPT_BUDGET) findings.push(`JavaScript is ${script} bytes, more than ${SCRIPT_BUDGET}, or not there`);
console.log([...findings, `${count} states, ${judged.size} of them for axe-core, at most ${(heaviest / 1000).toFixed(1)} KB; JavaScript ${(script / 1000).toFixed(1)} KB`].join('\n'));
if (findings.length) process.exitCode = 1;
