// Runs cases in a browser. Whatever a case is about, the browser must not complain, ask other hosts or keep anything.
import assert from 'node:assert/strict';
import { launch } from './chromium.mjs';
import { serveImage } from './image.mjs';

const PATIENCE = 10_000;
const WORKERS = 2;

/**
 * A case is a function, or `{ run, refused, ...settings of the browser }`; `refused` lists the addresses that are meant
 * to answer with an error.
 */
export async function runCases(base, imagePort, cases) {
  const image = `http://127.0.0.1:${imagePort}/latest`;
  const endImage = await serveImage(imagePort);
  const browser = await launch();
  const failures = [];

  async function judge(name, { run, refused = [], ...settings }) {
    const context = await browser.newContext({ baseURL: base, reducedMotion: 'reduce', ...settings });
    context.setDefaultTimeout(PATIENCE);
    const complaints = watch(context, base, image, refused);
    try {
      const page = await context.newPage();
      await run({ page, context, base, image });
      for (const open of context.pages()) await expectNothingKept(open);
      assert.deepEqual(await context.cookies(), [], 'cookies');
      assert.equal(complaints.size, 0, 'the browser complains');
    } catch (error) {
      const what = error instanceof assert.AssertionError ? error.message : error.stack;
      failures.push([`${name}:`, what, ...complaints].join('\n'));
    } finally {
      await context.close();
    }
  }

  const waiting = Object.entries(cases);
  await Promise.all(
    Array.from({ length: WORKERS }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift())
        await judge(next[0], typeof next[1] === 'function' ? { run: next[1] } : next[1]);
    }),
  );
  await browser.close();
  endImage();
  console.log([...failures, `${Object.keys(cases).length - failures.length} of ${Object.keys(cases).length} cases`].join('\n\n'));
  if (failures.length) process.exitCode = 1;
}

function watch(context, base, image, refused) {
  const complaints = new Set();
  context.on('request', (request) => {
    const url = request.url();
    if (new URL(url).origin !== base && url !== image) complaints.add(`a request to another host: ${url}`);
  });
  context.on('response', (response) => {
    const { pathname } = new URL(response.url());
    if (response.status() >= 400 && !refused.includes(pathname)) complaints.add(`${response.status()} for ${response.url()}`);
  });
  // Chromium's own line about an answer of 400 or more says nothing that the check above does not.
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !message.text().startsWith('Failed to load resource'))
      complaints.add(`console: ${message.text()}`);
  });
  context.on('weberror', (error) => complaints.add(`uncaught: ${error.error().message}`));
  return complaints;
}

async function expectNothingKept(page) {
  if (!page.url().startsWith('http')) return;
  const kept = await page.evaluate(() => [document.cookie.length, localStorage.length, sessionStorage.length]);
  assert.deepEqual(kept, [0, 0, 0], 'what is kept in cookies, local and session storage');
}

export const form = (page) => page.locator('main form[method=post]');
export const field = (page, name) => form(page).locator(`[name=${name}]`);
export const submit = (page) => form(page).locator('[type=submit]');
export const panel = (page) => page.locator('main [role=status]');

/** Fills in fields by their names. */
export async function type(page, fields) {
  for (const [name, value] of Object.entries(fields)) await field(page, name).fill(value);
}

/** What the API says about a body it refuses, field by field. */
export async function refusalOf(base, path, body) {
  const answer = await fetch(base + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  assert.equal(answer.status, 400);
  return Object.fromEntries((await answer.json()).errors.map(({ pointer, detail }) => [pointer.slice(2), detail]));
}

/** The field is marked as wrong, and the words that describe it are the service's own, where people see them. */
export async function expectFault(page, name, words) {
  await form(page).locator(`[name=${name}][aria-invalid=true]`).waitFor();
  const ids = (await field(page, name).getAttribute('aria-describedby')).split(' ');
  const described = [];
  for (const id of ids) {
    const text = page.locator(`[id="${id}"]`);
    if (await text.isVisible()) described.push((await text.innerText()).trim());
  }
  assert.ok(described.includes(words), `beside ${name} stands ${JSON.stringify(described)}, not ${JSON.stringify(words)}`);
}

export async function expectTyped(page, fields) {
  for (const [name, value] of Object.entries(fields)) assert.equal(await field(page, name).inputValue(), value, name);
}
