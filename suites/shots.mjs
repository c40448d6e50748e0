// usage: node suites/shots.mjs URL OUTDIR [LINK] [NAME...]
// Pictures of all pages and states, or the named ones, at three widths, light and dark, for people to look at; and those of one
// screen for the README and the docs. With LINK, which `porchlight desk` prints, they are of the desk, and the service at URL, which
// has to be new, gets people and messages.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch } from './chromium.mjs';
import { ANSWERED, fill, MESSAGES, PEOPLE } from './desk-data.mjs';
import { session } from './desk-service.mjs';
import { deskStates, press } from './desk-states.mjs';
import { PLAIN_STATES, STATES, withoutScript } from './states.mjs';

const [, , address, folder, ...rest] = process.argv;
const [link] = rest.filter((word) => word.startsWith('http'));
const names = rest.filter((word) => word !== link);
if (!folder) {
  console.error('usage: node suites/shots.mjs URL OUTDIR [LINK] [NAME...]');
  process.exit(2);
}
const base = new URL(address).origin;
const WIDTHS = [320, 768, 1280];
const HEIGHT = 800;
/** Those of which there is a picture of one screen. */
const SCREENS = ['home', 'desk-inbox-all', 'desk-message'];

const browser = await launch();

/** One state in all its looks. */
async function shoot(name, reach, scripted) {
  const context = await browser.newContext({ reducedMotion: 'reduce', acceptDownloads: false });
  if (!scripted) await withoutScript(context);
  // Where the disk image comes from is not looked at, and it may lead nowhere.
  await context.route('**/*.dmg', (route) => route.fulfill({ status: 204 }));
  const page = await context.newPage();
  await reach(page, base);
  if (link) await page.evaluate(setMoments);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      await page.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      if (SCREENS.includes(name) && width === 1280) await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
    }
  }
  await context.close();
}

/** Lets the rows of a list be of different days, as they would be if their data had not come at once. */
function setMoments() {
  const days = ['19 Nov 2026, 09:42', '19 Nov 2026, 08:05', '18 Nov 2026, 21:17', '18 Nov 2026, 14:50', '17 Nov 2026, 10:31', '16 Nov 2026, 18:26'];
  for (const [place, item] of [...document.querySelectorAll('.rows > li')].entries()) setAll(item, days[Math.min(place, days.length - 1)]);
  setAll(document.body, days[0]);
  function setAll(element, day) {
    const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) if (!days.some((set) => texts.currentNode.data.includes(set))) texts.currentNode.data = texts.currentNode.data.replace(/\d+ \w{3} 20\d\d, \d\d:\d\d/, day);
  }
}

/** The states of a desk that has been used a little. */
async function usedDesk() {
  const desk = { links: [link], ...(await session(link)) };
  await fill(base, { people: PEOPLE, messages: MESSAGES });
  const states = deskStates(desk);
  const page = await (await browser.newContext()).newPage();
  await states.inbox(page);
  await press(page, new RegExp(`answered.*${ANSWERED.name}`));
  return Object.fromEntries(Object.entries(states).map(([name, reach]) => [`desk-${name}`, reach]));
}

await mkdir(folder, { recursive: true });
const wanted = (states) => Object.entries(states).filter(([name]) => !names.length || names.includes(name));
for (const [name, reach] of wanted(link ? await usedDesk() : STATES)) await shoot(name, reach, true);
for (const [name, reach] of wanted(link ? {} : PLAIN_STATES)) await shoot(name, reach, false);
await browser.close();
