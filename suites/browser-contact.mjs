// The contact form.
import assert from 'node:assert/strict';
import { expectBody, expectFault, expectTyped, field, form, panel, refusalOf, submit, type } from './browser-cases.mjs';

const LIMIT = 4000;
const SENT = ({ pathname }) => pathname === '/contact/sent';
const LETTER = { name: 'Ada & "Co" <b>', email: 'ada@example.com', message: 'Hello,\n\n  does it run on <i>macOS</i> 15?\n' };
const WRONG = { ...LETTER, email: 'ada@localhost' };
const BLANK = { ...LETTER, message: ' \n ' };

export const contactCases = {
  'a message is sent in place': async ({ page }) => {
    await page.goto('/contact');
    await type(page, LETTER);
    const asked = page.waitForRequest('**/api/contact');
    await submit(page).click();
    expectBody(await asked, LETTER);
    await panel(page).waitFor();
    assert.equal(await form(page).count(), 0, 'the form is gone');
    assert.equal(new URL(page.url()).pathname, '/contact');
  },

  'a refused message: the error beside the field, and everything typed is kept': {
    refused: ['/api/contact'],
    run: async ({ page, base }) => {
      await page.goto('/contact');
      const long = { ...LETTER, message: 'x'.repeat(LIMIT + 1) };
      for (const [wrong, fields] of [['email', WRONG], ['message', BLANK], ['message', long]]) {
        await type(page, fields);
        await submit(page).click();
        await expectFault(page, wrong, (await refusalOf(base, '/api/contact', fields))[wrong]);
        await expectTyped(page, fields);
      }
      await type(page, LETTER);
      await submit(page).click();
      await panel(page).waitFor();
    },
  },

  'a counter appears near the limit': async ({ page }) => {
    await page.goto('/contact');
    const counter = form(page).getByText(/characters left|over the limit/);
    await type(page, { message: 'x'.repeat(100) });
    assert.equal(await counter.isVisible(), false);
    await type(page, { message: '🎭'.repeat(LIMIT - 12) }); // counted as people count
    await counter.waitFor();
    assert.match(await counter.innerText(), /^12 characters left/);
    await type(page, { message: 'x'.repeat(LIMIT + 34) });
    assert.match(await counter.innerText(), /^34 /);
  },

  'without JavaScript: a page that says what happened': {
    javaScriptEnabled: false,
    run: async ({ page }) => {
      await page.goto('/contact');
      await type(page, LETTER);
      await submit(page).click();
      await page.waitForURL(SENT);
      assert.match(await page.locator('main').innerText(), /message/i);
    },
  },

  'without JavaScript: a refused message': {
    javaScriptEnabled: false,
    refused: ['/contact'],
    run: async ({ page, base }) => {
      await page.goto('/contact');
      for (const [wrong, fields] of [['email', WRONG], ['message', BLANK]]) {
        await type(page, fields);
        await submit(page).click();
        await expectFault(page, wrong, (await refusalOf(base, '/api/contact', fields))[wrong]);
        await expectTyped(page, fields);
      }
      await type(page, LETTER);
      await submit(page).click();
      await page.waitForURL(SENT);
    },
  },

  'a program that fills in the hidden field is refused with a reason, and no word of the message is lost': {
    refused: ['/contact'],
    run: async ({ page }) => {
      await page.goto('/contact');
      await type(page, LETTER);
      await field(page, 'website_confirm').evaluate((element) => (element.value = 'x'));
      await submit(page).click();
      await page.getByText(/password manager/).first().waitFor();
      await expectTyped(page, { ...LETTER, website_confirm: '' });
    },
  },
};
