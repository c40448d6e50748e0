// usage: node axe.mjs BASE_URL IMAGE_PORT
// axe-core over every page and every state of the forms, light and dark, narrow and wide.
import { AxeBuilder } from '@axe-core/playwright';
import { launch } from './chromium.mjs';
import { serveImage } from './image.mjs';
import { PLAIN_STATES, STATES, withoutScript } from './states.mjs';

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

const endImage = await serveImage(imagePort);
const browser = await launch();
const findings = [];

async function judge([name, reach, scripted]) {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  if (!scripted) await withoutScript(context);
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  try {
    await reach(page, base);
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
  ...Object.entries(STATES).map((state) => [...state, true]),
  ...Object.entries(PLAIN_STATES).map((state) => [...state, false]),
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
