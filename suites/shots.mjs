// usage: node suites/shots.mjs URL OUTDIR
// Pictures of all pages at three widths, light and dark, for people to look at; and the two of the home page for the README.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, open } from './chromium.mjs';
import { PAGES } from './pages.mjs';

const [, , base, folder] = process.argv;
if (!folder) {
  console.error('usage: node suites/shots.mjs URL OUTDIR');
  process.exit(2);
}
const WIDTHS = [320, 768, 1280];
const HEIGHT = 800;

await mkdir(folder, { recursive: true });
const browser = await launch();
for (const colorScheme of ['light', 'dark']) {
  const context = await browser.newContext({ colorScheme, reducedMotion: 'reduce' });
  // The page after the form would lead on to the disk image.
  await context.route(
    (url) => !Object.values(PAGES).includes(url.pathname),
    (route) => (route.request().isNavigationRequest() ? route.fulfill({ status: 204 }) : route.continue()),
  );
  const page = await context.newPage();
  for (const [name, path] of Object.entries(PAGES)) {
    await open(page, new URL(path, base).href);
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      if (name === 'home' && width === 1280) await page.screenshot({ path: join(folder, `home-${colorScheme}.png`) });
    }
  }
  await context.close();
}
await browser.close();
