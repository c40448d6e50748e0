// Every page: width, colours, motion, links.
import assert from 'node:assert/strict';
import { form, submit, type } from './browser-cases.mjs';
import { open, sideways } from './chromium.mjs';
import { PAGES } from './pages.mjs';

const MISSING = ['/no-such-page'];

async function everyPage(page, look) {
  for (const path of Object.values(PAGES)) {
    await page.goto(path);
    await look(path);
  }
}

const expectNoSideways = async (page, where) => assert.deepEqual(await sideways(page), [], `${where} is wider than the screen`);

/** How bright what the page shows is, from 0 to 1, measured on its picture. */
async function brightness(page) {
  const picture = (await page.screenshot()).toString('base64');
  const judge = await page.context().newPage();
  try {
    return await judge.evaluate(async (data) => {
      const blob = await (await fetch(`data:image/png;base64,${data}`)).blob();
      const bitmap = await createImageBitmap(blob);
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
      canvas.drawImage(bitmap, 0, 0);
      const { data: bytes } = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
      let sum = 0;
      for (let at = 0; at < bytes.length; at += 4) sum += 0.2126 * bytes[at] + 0.7152 * bytes[at + 1] + 0.0722 * bytes[at + 2];
      return sum / (bytes.length / 4) / 255;
    }, picture);
  } finally {
    await judge.close();
  }
}

export const pageCases = {
  'nothing is wider than a screen of 320 pixels': {
    viewport: { width: 320, height: 640 },
    refused: [...MISSING, '/download', '/contact'],
    run: async ({ page }) => {
      await everyPage(page, (path) => expectNoSideways(page, path));
      await page.goto('/contact');
      await type(page, { name: 'A'.repeat(100), email: `${'a'.repeat(60)}@localhost`, message: 'x'.repeat(500) });
      await form(page).evaluate((element) => element.submit());
      await page.locator('[name=email][aria-invalid=true]').waitFor();
      await expectNoSideways(page, 'a refused message');
      await page.goto('/');
      await type(page, { email: 'narrow@example.com' });
      await Promise.all([page.waitForEvent('download'), submit(page).click()]);
      await expectNoSideways(page, 'a started download');
    },
  },

  'dark is dark': {
    colorScheme: 'dark',
    refused: MISSING,
    run: async ({ page }) =>
      everyPage(page, async (path) => {
        const light = await brightness(page);
        assert.ok(light < 0.25, `${path} has a brightness of ${light.toFixed(2)}`);
      }),
  },

  'light is light': {
    colorScheme: 'light',
    refused: MISSING,
    run: async ({ page }) =>
      everyPage(page, async (path) => {
        const light = await brightness(page);
        assert.ok(light > 0.7, `${path} has a brightness of ${light.toFixed(2)}`);
      }),
  },

  'nothing moves for visitors who prefer reduced motion': {
    refused: MISSING,
    run: async ({ page }) =>
      everyPage(page, async (path) => {
        const moving = await page.evaluate(() => [
          ...document.getAnimations().filter((a) => a.playState === 'running' && a.effect.getComputedTiming().duration > 1).map((a) => a.animationName ?? a.transitionProperty),
          ...(getComputedStyle(document.documentElement).scrollBehavior === 'smooth' ? ['scrolling'] : []),
        ]);
        assert.deepEqual(moving, [], path);
      }),
  },

  'pages are whole without JavaScript': {
    javaScriptEnabled: false,
    refused: MISSING,
    run: async ({ page }) =>
      everyPage(page, async (path) => {
        assert.equal(await page.locator('h1').count(), 1, path);
        assert.ok((await page.locator('main').innerText()).length > 60, path);
      }),
  },

  'every link leads somewhere': async ({ page, base, image }) => {
    const found = new Map();
    for (const path of Object.values(PAGES).filter((path) => !MISSING.includes(path))) {
      await page.goto(path);
      for (const href of await page.locator('a[href]').evaluateAll((links) => links.map((link) => link.href)))
        if (href.startsWith(base)) found.set(href, path);
    }
    for (const [href, from] of found) {
      if (href === image) continue;
      const answer = await fetch(href);
      assert.equal(answer.status, 200, `${from} links to ${href}`);
      const anchor = decodeURIComponent(new URL(href).hash.slice(1));
      if (anchor) assert.ok((await answer.text()).includes(`id="${anchor}"`), `${from} links to ${href}, which has no such place`);
    }
  },

  'code can be copied': {
    permissions: ['clipboard-read', 'clipboard-write'],
    run: async ({ page }) => {
      await open(page, '/developers');
      const box = page.locator('main :has(> pre):has(> button)').first();
      await box.locator('button').click();
      await box.getByText('Copied').waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await box.locator('pre').evaluate((pre) => pre.textContent));
    },
  },
};
