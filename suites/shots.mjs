// usage: node suites/shots.mjs URL OUTDIR [NAME...]
// Pictures of all pages and states, or the named ones, at three widths, light and dark, for people to look at; and the
// two of the home page for the README.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch } from './chromium.mjs';
import { PLAIN_STATES, STATES, withoutScript } from './states.mjs';

const [, , address, folder, ...names] = process.argv;
if (!folder) {
  console.error('usage: node suites/shots.mjs URL OUTDIR [NAME...]');
  process.exit(2);
}
const base = new URL(address).origin;
const WIDTHS = [320, 768, 1280];
const HEIGHT = 800;

const browser = await launch();

/** One state in all its looks. */
async function shoot(name, reach, scripted) {
  const context = await browser.newContext({ reducedMotion: 'reduce', acceptDownloads: false });
  if (!scripted) await withoutScript(context);
  // Where the disk image comes from is not looked at, and it may lead nowhere.
  await context.route('**/*.dmg', (route) => route.fulfill({ status: 204 }));
  const page = await context.newPage();
  await reach(page, base);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      if (name === 'home' && width === 1280) await page.screenshot({ path: join(folder, `home-${colorScheme}.png`) });
    }
  }
  await context.close();
}

await mkdir(folder, { recursive: true });
const wanted = (states) => Object.entries(states).filter(([name]) => !names.length || names.includes(name));
for (const [name, reach] of wanted(STATES)) await shoot(name, reach, true);
for (const [name, reach] of wanted(PLAIN_STATES)) await shoot(name, reach, false);
await browser.close();
