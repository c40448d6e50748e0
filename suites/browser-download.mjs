// The download form.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { expectBody, expectFault, expectTyped, field, form, panel, refusalOf, submit, type } from './browser-cases.mjs';
import { IMAGE } from './image.mjs';

const WRONG = 'nobody@localhost'; // a browser takes it for an address, the service does not
const HELP = /Open Anyway/;
const KNOWN = /already/i;

async function expectImage(download, image) {
  assert.equal(download.url(), image);
  assert.match(download.suggestedFilename(), /^Troupe(\(\d\))?\.dmg$/); // Firefox counts those that are there
  assert.deepEqual(await readFile(await download.path()), IMAGE);
}

/** Delays the response of a URL until the returned function is called. */
async function hold(page, path) {
  const { promise, resolve } = Promise.withResolvers();
  await page.route(`**${path}`, async (route) => {
    await promise;
    await route.continue();
  });
  return resolve;
}

/** Sends the form and waits for the download that begins by itself. */
async function order(page, fields, press = () => submit(page).click()) {
  await type(page, fields);
  const [download] = await Promise.all([page.waitForEvent('download'), press()]);
  return download;
}

export const downloadCases = {
  'the download starts by itself, with help and a way to try again': async ({ page, image }) => {
    await page.goto('/');
    await type(page, { email: 'in-place@example.com' });
    assert.equal(await field(page, 'updates').isChecked(), false, 'the box is unticked');
    const idle = await submit(page).innerText();
    const release = await hold(page, '/api/download');
    const asked = page.waitForRequest('**/api/download');
    const begun = page.waitForEvent('download');
    await submit(page).click();
    expectBody(await asked, { email: 'in-place@example.com', updates: false, source: 'site' });
    assert.notEqual(await submit(page).innerText(), idle, 'the button says that it is working');
    release();
    await expectImage(await begun, image);
    await panel(page).waitFor();
    assert.equal(await form(page).count(), 0, 'the form is gone');
    assert.doesNotMatch(await panel(page).innerText(), KNOWN);
    assert.ok(await panel(page).locator(`a[href="${image}"]`).isVisible(), 'a link to try again');
    assert.ok(await page.getByText(HELP).last().isVisible(), 'help with opening it the first time');
    assert.equal(new URL(page.url()).pathname, '/');
  },

  'someone who comes again gets a friendly word': async ({ page, image }) => {
    await page.goto('/');
    await order(page, { email: 'again@example.com' });
    await page.goto('/');
    await expectImage(await order(page, { email: 'again@example.com' }), image);
    assert.match(await panel(page).innerText(), KNOWN);
  },

  'with the keyboard alone': async ({ page, image }) => {
    await page.goto('/');
    await page.keyboard.press('Tab');
    await expectFocusSeen(page);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('href')), '#content', 'first a way past the navigation');
    const tabTo = async (target) => {
      for (let tabs = 0; tabs < 80; tabs += 1) {
        if (await target.evaluate((element) => element === document.activeElement)) return;
        await page.keyboard.press('Tab');
        await expectFocusSeen(page);
      }
      assert.fail('never reached with the Tab key');
    };
    await tabTo(field(page, 'email'));
    await page.keyboard.type('keyboard@example.com');
    await tabTo(field(page, 'updates'));
    await page.keyboard.press('Space');
    await tabTo(submit(page));
    const asked = page.waitForRequest('**/api/download');
    await expectImage(await order(page, {}, () => page.keyboard.press('Enter')), image);
    expectBody(await asked, { email: 'keyboard@example.com', updates: true, source: 'site' });
    await panel(page).waitFor();
    assert.ok(await panel(page).evaluate((element) => element.contains(document.activeElement)), 'the focus is where the news is');
  },

  'a refused address: the error beside the field, and everything typed is kept': {
    refused: ['/api/download'],
    run: async ({ page, base }) => {
      await page.goto('/');
      const idle = await submit(page).innerText();
      for (const email of ['nobody', WRONG, '']) {
        await type(page, { email });
        await field(page, 'updates').check();
        await submit(page).click();
        await expectFault(page, 'email', (await refusalOf(base, '/api/download', { email })).email);
        await expectTyped(page, { email });
        assert.ok(await field(page, 'updates').isChecked());
        assert.ok(await field(page, 'email').evaluate((element) => element === document.activeElement), 'the field has the focus');
        assert.equal(await submit(page).innerText(), idle);
      }
      await expectRepaired(page);
    },
  },

  'a service that is busy or away: said, and all that was typed kept': {
    refused: ['/api/download'],
    run: async ({ page }) => {
      await page.goto('/');
      const answers = [
        [/try again/, (route) => route.abort()],
        [/^Nothing is published\.$/, (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"status":503,"code":"unavailable","detail":"Nothing is published."}' })],
        [/try again/, (route) => route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad gateway</h1>' })],
      ];
      for (const [words, answer] of answers) {
        await page.route('**/api/download', answer);
        await type(page, { email: 'later@example.com' });
        await submit(page).click();
        const alert = form(page).locator('[role=alert]:visible');
        await alert.waitFor();
        assert.match((await alert.innerText()).trim(), words);
        await expectTyped(page, { email: 'later@example.com' });
        await page.unroute('**/api/download', answer);
      }
      await expectRepaired(page);
    },
  },

  'a program that fills in the hidden field is refused with a reason, and nothing typed is lost': {
    refused: ['/download'],
    run: async ({ page }) => {
      await page.goto('/');
      await expectTrapSprung(page);
      await expectRepaired(page);
    },
  },

  'without JavaScript: a page that says what happened, and the download': {
    javaScriptEnabled: false,
    run: async ({ page, image }) => {
      await page.goto('/');
      await expectImage(await order(page, { email: 'plain@example.com' }), image);
      assert.equal(new URL(page.url()).pathname, '/download/started');
      assert.ok(await page.locator(`main a[href="${image}"]`).first().isVisible(), 'a link to try again');
      assert.ok(await page.getByText(HELP).last().isVisible(), 'help with opening it the first time');
    },
  },

  'without JavaScript: a refused address': {
    javaScriptEnabled: false,
    refused: ['/download'],
    run: async ({ page, base }) => {
      await page.goto('/');
      await type(page, { email: WRONG });
      await field(page, 'updates').check();
      await submit(page).click();
      await expectFault(page, 'email', (await refusalOf(base, '/api/download', { email: WRONG })).email);
      await expectTyped(page, { email: WRONG });
      assert.ok(await field(page, 'updates').isChecked());
      await expectRepairedPlain(page);
    },
  },

  'without JavaScript: a program that fills in the hidden field is refused with a reason': {
    javaScriptEnabled: false,
    refused: ['/download'],
    run: async ({ page }) => {
      await page.goto('/');
      await expectTrapSprung(page);
      await expectRepairedPlain(page);
    },
  },
};

/** The form once more, with an address that is right. */
async function expectRepaired(page) {
  await order(page, { email: 'right@example.com' });
  await panel(page).waitFor();
}

async function expectRepairedPlain(page) {
  await order(page, { email: 'right@example.com' });
  assert.equal(new URL(page.url()).pathname, '/download/started');
}

async function expectTrapSprung(page) {
  const box = await field(page, 'website_confirm').boundingBox();
  assert.ok(!box || box.x + box.width <= 0 || box.y + box.height <= 0, 'people do not see the field');
  await type(page, { email: 'manager@example.com' });
  await field(page, 'updates').check();
  await field(page, 'website_confirm').evaluate((element) => (element.value = 'https://example.com'));
  const answer = page.waitForResponse('**/download');
  await submit(page).click();
  assert.equal((await answer).status(), 400);
  await page.getByText(/password manager/).first().waitFor();
  await expectTyped(page, { email: 'manager@example.com', website_confirm: '' });
  assert.ok(await field(page, 'updates').isChecked());
}

/** Something around the focused element shows where the focus is, and it is on the screen. */
async function expectFocusSeen(page) {
  const { name, outline, shadow, inView } = await page.evaluate(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    return {
      name: element.outerHTML.slice(0, 120),
      outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
      shadow: style.boxShadow !== 'none',
      inView: box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    };
  });
  assert.ok(outline || shadow, `nothing shows the focus on ${name}`);
  assert.ok(inView, `the focus is out of sight on ${name}`);
}
