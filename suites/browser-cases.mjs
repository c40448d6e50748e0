// Runs cases in a browser. Whatever a case is about, the browser must not complain, ask other hosts or keep anything.
import assert from 'node:assert/strict';
import { serveImage } from './image.mjs';

const PATIENCE = 20_000;
// Chromium's own line about an answer of 400 or more says nothing that the check of answers does not. The others are Firefox's,
// of a script that a case keeps away, by the hash of no content, and of the style that Playwright adds for a picture.
const EXPECTED = new RegExp(
  ['^Failed to load resource', '^Loading failed for the module', '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
    'sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA='].join('|').replaceAll('+', '\\+'));
const WORKERS = 2;

/** What must be noticed: done to a page, and what the browser then says. */
const CONTROLS = {
  'an inline style': [() => document.head.append(Object.assign(document.createElement('style'), { textContent: 'p{}' })), /style-src/],
  'an error in the console': [() => console.error('planted'), /planted/],
  'another host': [() => fetch('http://127.0.0.1:9/').catch(() => {}), /connect-src/],
  'something kept': [() => localStorage.setItem('a', 'b'), /what is kept/],
};

/**
 * A case is a function, or `{ run, refused, meant, origin, ...settings of the browser }`; `refused` lists the addresses, or patterns
 * of them, that are meant to answer with an error, `meant` is what the browser may complain about, and `origin` where the case
 * begins if that is not `base`.
 */
export async function runCases(browser, base, imagePort, cases) {
  const image = `http://127.0.0.1:${imagePort}/latest`;
  const endImage = imagePort ? await serveImage(imagePort) : () => {};
  const failures = [];
  let passed = 0;
  // What a failed case still waited for is rejected when its context is closed, and must not end the other cases.
  process.on('unhandledRejection', (error) => {
    failures.push(`a case that failed still waited for this: ${error.message}`);
    process.exitCode = 1;
  });

  /** What is wrong with a case, or nothing. */
  async function judge({ run, refused = [], meant, origin = base, ...settings }) {
    const context = await browser.newContext({ baseURL: origin, reducedMotion: 'reduce', ...settings });
    context.setDefaultTimeout(PATIENCE);
    const complaints = watch(context, origin, image, refused);
    try {
      const page = await context.newPage();
      await run({ page, context, base: origin, image });
      for (const open of context.pages()) await expectNothingKept(open);
      // Firefox lists one that was deleted until its second is over.
      const kept = (await context.cookies()).filter(({ expires }) => expires < 0 || expires * 1000 > Date.now());
      assert.deepEqual(kept, [], 'cookies');
      for (const complaint of complaints) assert.match(complaint, meant ?? /^$/, 'the browser complains');
    } catch (error) {
      const what = error instanceof assert.AssertionError ? error.message : error.stack;
      return [what, ...complaints].join('\n');
    } finally {
      await context.close();
    }
  }

  const waiting = Object.entries(cases);
  await Promise.all(
    Array.from({ length: browser.workers ?? WORKERS }, async () => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const failure = await judge(typeof next[1] === 'function' ? { run: next[1] } : next[1]);
        if (failure) failures.push(`${next[0]}:\n${failure}`);
        else passed += 1;
      }
    }),
  );
  const count = `${passed} of ${Object.keys(cases).length} cases`;
  for (const [name, [spoil, noticed]] of Object.entries(CONTROLS)) {
    const run = async ({ page }) => {
      await page.goto('/');
      await page.evaluate(spoil);
      await page.goto('/about'); // what the browser says of the first page has arrived by then
    };
    const failure = await judge({ run });
    if (!noticed.test(failure)) failures.push(`control, ${name}: not noticed: ${failure}`);
  }
  await browser.close();
  endImage();
  console.log([...failures, count].join('\n\n'));
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
    const isMeant = refused.some((each) => each === pathname || each.test?.(pathname));
    if (response.status() >= 400 && !isMeant) complaints.add(`${response.status()} for ${response.url()}`);
  });
  context.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()) && !EXPECTED.test(message.text())) complaints.add(`console: ${message.text()}`);
  });
  context.on('weberror', (error) => {
    if (!EXPECTED.test(error.error().message)) complaints.add(`uncaught: ${error.error().message}`);
  });
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
  for (const [name, value] of Object.entries(fields)) {
    // Over WebDriver BiDi `fill` adds to what is in an email field.
    await field(page, name).evaluate((element) => (element.value = ''));
    await field(page, name).fill(value);
  }
}

/** The body of a request, which WebDriver BiDi does not tell. */
export function expectBody(request, body) {
  if (isFirefox(request.frame().page())) assert.equal(request.postData(), null, 'Firefox tells the body: compare it');
  else assert.deepEqual(request.postDataJSON(), body);
}

const isFirefox = (page) => page.context().browser().browserType().name() === 'firefox';

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
