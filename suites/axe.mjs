// usage: node axe.mjs BASE_URL IMAGE_PORT
// axe-core over every page and every state of the forms, light and dark, narrow and wide.
import { AxeBuilder } from '@axe-core/playwright';
import { launch, open, settle } from './chromium.mjs';
import { serveImage } from './image.mjs';
import { PAGES } from './pages.mjs';

const [, , base, imagePort] = process.argv;
const WIDTHS = [320, 1280];
const SCHEMES = ['light', 'dark'];
const OPTIONS = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  rules: { 'target-size': { enabled: true } },
  resultTypes: ['violations'],
};
const WORKERS = 2;
const PATIENCE = 10_000;

/** Opens a page, fills in its form and sends it. */
const send = async (page, path, fields) => {
  await open(page, base + path);
  for (const [name, value] of Object.entries(fields)) await page.locator(`main form [name=${name}]`).fill(value);
  await page.locator('main form [type=submit]').click();
};
const shown = (page, selector) => page.locator(selector).first().waitFor();

const states = {
  ...Object.fromEntries(Object.entries(PAGES).map(([name, path]) => [name, (page) => open(page, base + path)])),
  'download, refused': async (page) => {
    await send(page, '/', { email: 'nobody' });
    await shown(page, '[name=email][aria-invalid=true]');
  },
  'download, started': async (page) => {
    await send(page, '/', { email: 'axe@example.com' });
    await shown(page, 'main [role=status]');
  },
  'contact, refused': async (page) => {
    await send(page, '/contact', { name: 'Ada', email: 'ada@example.com', message: ' ' });
    await shown(page, '[name=message][aria-invalid=true]');
  },
  'contact, over the limit': async (page) => {
    await open(page, `${base}/contact`);
    await page.locator('main form [name=message]').fill('x'.repeat(4001));
  },
  'contact, sent': async (page) => {
    await send(page, '/contact', { name: 'Ada', email: 'ada@example.com', message: 'Hello' });
    await shown(page, 'main [role=status]');
  },
};
// What a browser itself lets through and the service refuses.
const plainStates = {
  'download, refused without JavaScript': async (page) => {
    await send(page, '/', { email: 'nobody@localhost' });
    await shown(page, '[name=email][aria-invalid=true]');
    await settle(page);
  },
  'contact, refused without JavaScript': async (page) => {
    await send(page, '/contact', { email: 'nobody@localhost', message: 'Hello' });
    await shown(page, '[name=email][aria-invalid=true]');
    await settle(page);
  },
};

const endImage = await serveImage(imagePort);
const browser = await launch();
const findings = [];

async function judge([name, reach, scripted]) {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  // axe itself is JavaScript, so only the site's own is kept away
  if (!scripted) await context.route('**/*.js', (route) => route.abort());
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  try {
    await reach(page);
    for (const colorScheme of SCHEMES) {
      for (const width of WIDTHS) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 800 });
        const { violations } = await new AxeBuilder({ page }).setLegacyMode().options(OPTIONS).analyze();
        for (const { id, help, nodes } of violations)
          for (const { target, failureSummary } of nodes)
            findings.push(`${name}, ${colorScheme}, ${width} px: ${id}: ${help}\n  ${target.join(' ')}\n  ${failureSummary.replaceAll('\n', '\n  ')}`);
      }
    }
  } catch (error) {
    findings.push(`${name}: ${error.message}`);
  } finally {
    await context.close();
  }
}

const waiting = [
  ...Object.entries(states).map((state) => [...state, true]),
  ...Object.entries(plainStates).map((state) => [...state, false]),
];
await Promise.all(
  Array.from({ length: WORKERS }, async () => {
    for (let state = waiting.shift(); state; state = waiting.shift()) await judge(state);
  }),
);
await browser.close();
endImage();
if (findings.length) {
  console.log(findings.join('\n'));
  process.exitCode = 1;
}
