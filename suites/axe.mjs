// usage: node axe.mjs BASE_URL IMAGE_PORT MAILED
// MAILED is what `mailedPages` of mailed.mjs gives, as JSON.
// axe-core over every page and every state of the forms, light and dark, narrow and wide.
import { launch } from './chromium.mjs';
import { serveImage } from './image.mjs';
import { judge } from './judge.mjs';
import { mailedStates, PLAIN_STATES, STATES, withoutScript } from './states.mjs';

const [, , base, imagePort, mailed] = process.argv;
const WORKERS = 2;
const PATIENCE = 10_000;

const endImage = await serveImage(imagePort);
const browser = await launch();
const findings = [];

async function visit([name, reach, scripted]) {
  const context = await browser.newContext({ reducedMotion: 'reduce' });
  if (!scripted) await withoutScript(context);
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  try {
    await reach(page, base);
    findings.push(...(await judge(page, name)));
  } catch (error) {
    findings.push(`${name}: ${error.message}`);
  } finally {
    await context.close();
  }
}

const waiting = [
  ...Object.entries(STATES).map((state) => [...state, true]),
  ...Object.entries(PLAIN_STATES).map((state) => [...state, false]),
  ...Object.entries(mailedStates(JSON.parse(mailed))).map((state) => [...state, true]),
];
await Promise.all(
  Array.from({ length: WORKERS }, async () => {
    for (let state = waiting.shift(); state; state = waiting.shift()) await visit(state);
  }),
);
await browser.close();
endImage();
if (findings.length) {
  console.log(findings.join('\n'));
  process.exitCode = 1;
}
