// usage: node browser.mjs BASE_URL IMAGE_PORT chromium|firefox
// The site in a real browser: what a visitor sees, types and gets, with JavaScript and without.
import { runCases } from './browser-cases.mjs';
import { contactCases } from './browser-contact.mjs';
import { downloadCases } from './browser-download.mjs';
import { pageCases } from './browser-pages.mjs';

const [, , base, imagePort, name] = process.argv;
const { launch } = await import(`./${name}.mjs`);
await runCases(await launch(), base, imagePort, { ...downloadCases, ...contactCases, ...pageCases });
