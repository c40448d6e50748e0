// Debian's Firefox, driven by Playwright over WebDriver BiDi; it ends with this process, however that ends.
import { firefox } from 'playwright-core';
import { withoutScript } from './states.mjs';

const EXECUTABLE = process.env.FIREFOX_PATH ?? '/usr/bin/firefox-esr';

/** What Chromium has for each context and Firefox only for a whole browser. */
const preferences = ({ colorScheme = 'light', reducedMotion }) => ({
  'layout.css.prefers-color-scheme.content-override': colorScheme === 'dark' ? 0 : 1,
  'ui.prefersReducedMotion': reducedMotion === 'reduce' ? 1 : 0,
  'dom.events.testing.asyncClipboard': true, // lets a page read the clipboard without asking
});

/** Firefox may report a navigation twice, and Playwright takes the second for another one to the same URL. */
function repeatInterrupted(page) {
  const goto = page.goto.bind(page);
  page.goto = (url, options) =>
    goto(url, options).catch((error) => {
      const [, first, second] = /Navigation to "(.*)" is interrupted by another navigation to "(.*)"/.exec(error.message) ?? [];
      if (!first || first !== second) throw error;
      return goto(url, options);
    });
}

/** Has the methods of a Playwright browser that the cases need. Starts a Firefox for each set of preferences. */
class Firefoxes {
  /** One case at a time, because one window has the focus. */
  workers = 1;
  #started = new Map();

  async newContext({ colorScheme, reducedMotion, javaScriptEnabled = true, permissions, ...settings }) {
    const firefoxUserPrefs = preferences({ colorScheme, reducedMotion });
    const key = JSON.stringify(firefoxUserPrefs);
    if (!this.#started.has(key))
      this.#started.set(key, firefox.launch({ channel: 'moz-firefox', executablePath: EXECUTABLE, headless: true, firefoxUserPrefs }));
    const browser = await this.#started.get(key);
    const context = await browser.newContext({ colorScheme: null, reducedMotion: null, ...settings });
    // With its own switch for JavaScript Firefox cannot be driven.
    if (!javaScriptEnabled) await withoutScript(context);
    context.on('page', repeatInterrupted);
    return context;
  }

  async close() {
    for (const browser of this.#started.values()) await (await browser).close();
  }
}

export const launch = () => new Firefoxes();
