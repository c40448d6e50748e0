// usage: node lighthouse.mjs BASE_URL
// Lighthouse, as on a phone, once a page: everything but performance must be perfect; performance is told.
import lighthouse from 'lighthouse';
import { launch } from './chromium.mjs';
import { freePort } from './processes.mjs';
import { FIVE } from './pages.mjs';

const base = process.argv[2];
const PERFECT = ['accessibility', 'best-practices', 'seo', 'agentic-browsing'];
const TOLD = 'performance';

/** One page in a browser of its own. What Lighthouse itself calls void (a trace without a beginning) says nothing of the page, and is measured again. */
const judge = async (url, tries = 3) => {
  const port = await freePort();
  const browser = await launch(`--remote-debugging-port=${port}`);
  const { lhr } = await lighthouse(url, { port, logLevel: 'silent', onlyCategories: [...PERFECT, TOLD] });
  await browser.close();
  return lhr.runtimeError && tries > 1 ? judge(url, tries - 1) : lhr;
};

const findings = [];
const told = [];
for (const [name, path] of Object.entries(FIVE)) {
  const lhr = await judge(base + path);
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
  told.push(`${name} ${Math.round(lhr.categories[TOLD].score * 100)}`);
}
console.log([...findings, `${TOLD} ${told.join(', ')}`].join('\n'));
if (findings.length) process.exitCode = 1;

function items({ details }) {
  return (details?.items ?? []).slice(0, 5).map((item) => `    ${JSON.stringify(item).slice(0, 300)}`);
}
