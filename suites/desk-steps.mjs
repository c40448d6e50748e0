// What a maker does on any page of the desk.
import assert from 'node:assert/strict';
import { press } from './desk-states.mjs';

export const follow = (page, name, within = page.locator('main')) =>
  Promise.all([page.waitForEvent('load'), within.getByRole('link', { name: new RegExp(`^${name}`) }).first().click()]);
export const menu = (page, name) => follow(page, name, page.getByRole('navigation', { name: 'Desk' }));
export const row = (page, text) => page.locator('.rows > li').filter({ hasText: text });
export const expectHeading = async (page, text) => assert.equal(await page.getByRole('heading', { level: 1 }).innerText(), text);
export const expectDone = async (page, words) => assert.match(await page.getByRole('status').first().innerText(), words);
/** What is in fields, by their labels. */
export const expectFields = async (page, fields) => {
  for (const [label, value] of Object.entries(fields)) assert.equal(await page.getByLabel(label).inputValue(), value, label);
};
export const write = async (page, fields) => {
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value);
};

export async function signIn(page, desk) {
  await page.goto(new URL(desk.links.shift()).pathname);
  await press(page, 'Sign in');
  await expectHeading(page, 'Overview');
}
export async function signOut(page) {
  await press(page, 'Sign out', page);
  await expectDone(page, /signed out/);
}

const PATIENCE = 20_000;

/** Asks until the answer is the one that is wanted, or long enough: then it fails with the last one. */
export async function until(ask, wanted) {
  const signal = AbortSignal.timeout(PATIENCE);
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    assert.ok(!signal.aborted, `still ${`${answer}`.slice(0, 300)}`);
  }
}

export const key = (page, name) => page.keyboard.press(name);
export const opening = (page, name) => Promise.all([page.waitForEvent('load'), key(page, name)]);

/** Whether the element with the focus shows it, be it in a frame; a frame in which nothing has it shows it itself. */
const showsFocus = (page) =>
  page.evaluate(() => {
    let element = document.activeElement;
    const inner = element.contentDocument?.activeElement;
    if (inner?.matches(':focus')) element = inner;
    const { outlineStyle, outlineWidth } = element.ownerDocument.defaultView.getComputedStyle(element);
    return outlineStyle === 'auto' || (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2);
  });
export const expectFocus = async (page, locator, what) => {
  assert.ok(await locator.evaluate((element) => element === document.activeElement), `${what} does not have the focus`);
  assert.ok(await showsFocus(page), `${what} has the focus and does not show it`);
};

/** Presses Tab until this has the focus. */
export async function tabTo(page, locator) {
  const has = () => locator.evaluate((element) => element === document.activeElement);
  for (let presses = 0; presses < 100 && !(await has()); presses += 1) await key(page, 'Tab');
  await expectFocus(page, locator, `${locator}`);
}

const CONTROLS = 'a[href], button, input:not([type=hidden]), textarea, select, summary, iframe';

/** Tab leads to every control of the page that is seen, and each shows that it has the focus. What is in a frame counts as the frame. */
export async function expectTabs(page) {
  // Behind the last one comes the window of the browser.
  const placeOfFocus = () =>
    page.evaluate((controls) => (document.hasFocus() ? [...document.querySelectorAll(controls)].indexOf(document.activeElement) : -1), CONTROLS);
  const names = await page.locator(CONTROLS).evaluateAll((all) =>
    all.map((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && `${each.localName} ${each.name || each.innerText || each.title}`));
  const left = new Set(names.flatMap((name, place) => (name ? [place] : [])));
  const first = page.getByRole('link', { name: 'Skip to content' });
  await first.focus();
  for (const back of ['Tab', 'Shift+Tab']) await key(page, back);
  for (let presses = 0; left.size && presses < 100; presses += 1) {
    const place = await placeOfFocus();
    if (left.delete(place)) assert.ok(await showsFocus(page), `the focus is not seen on ${names[place]}`);
    if (left.size) await key(page, 'Tab');
  }
  assert.deepEqual([...left].map((place) => names[place]), [], `on ${page.url()} Tab does not lead to these`);
  await first.focus();
}
