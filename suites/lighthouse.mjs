// usage: node lighthouse.mjs BASE_URL
// Lighthouse, as on a phone, once a page: everything but performance must be perfect; performance is reported.
import lighthouse from 'lighthouse';
import { launch } from './chromium.mjs';
import { freePort } from './processes.mjs';
import { FIVE } from './pages.mjs';

const base = process.argv[2];
const PERFECT = ['accessibility', 'best-practices', 'seo', 'agentic-browsing'];
const REPORTED = 'performance';

// Lighthouse begins on a page of its own and then goes to the one to judge. From `about:blank` Chromium goes there with a
// renderer that it started in reserve, and if that one is still coming up when the trace begins, the navigation is missing
// from the trace (NO_NAVSTART). Between two pages of one site the renderer stays the same.
const START = `${base}/robots.txt`;

const port = await freePort();
const browser = await launch(`--remote-debugging-port=${port}`);
const findings = [];
const reported = [];
for (const [name, path] of Object.entries(FIVE)) {
  const { lhr } = await lighthouse(base + path, { port, blankPage: START, logLevel: 'silent', onlyCategories: [...PERFECT, REPORTED] });
  if (lhr.runtimeError) findings.push(`${name}: ${lhr.runtimeError.message}`);
  for (const category of PERFECT) {
    const { score, auditRefs } = lhr.categories[category];
    if (score === 1) continue;
    findings.push(`${name}: ${category} ${score === null ? 'was not judged' : Math.round(score * 100)}`);
    for (const { id, weight } of auditRefs) {
      const audit = lhr.audits[id];
      if (weight && audit.score !== null && audit.score < 1)
        findings.push(`  ${id}: ${audit.title}${audit.displayValue ? `, ${audit.displayValue}` : ''}`, ...items(audit));
    }
  }
  reported.push(`${name} ${Math.round(lhr.categories[REPORTED].score * 100)}`);
}
await browser.close();
console.log([...findings, `${REPORTED} ${reported.join(', ')}`].join('\n'));
if (findings.length) process.exitCode = 1;

function items({ details }) {
  return (details?.items ?? []).slice(0, 5).map((item) => `    ${JSON.stringify(item).slice(0, 300)}`);
}
