// usage: node browser.mjs BASE_URL IMAGE_PORT
// The site in a real browser: what a visitor sees, types and gets, with JavaScript and without.
import { runCases } from './browser-cases.mjs';
import { contactCases } from './browser-contact.mjs';
import { downloadCases } from './browser-download.mjs';
import { pageCases } from './browser-pages.mjs';

const [, , base, imagePort] = process.argv;
await runCases(base, imagePort, { ...downloadCases, ...contactCases, ...pageCases });
