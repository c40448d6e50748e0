// usage: node agents.mjs BASE_URL
// Three tools that judge how well agents can read a site and act on it. README.md explains every point lost.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { analyze, crawl, score } from 'agent-readiness';

const base = process.argv[2];
const module = (path) => join(import.meta.dirname, 'node_modules', path);
// agent-readability looks at pages in a random order, and takes the home page's Markdown to be at HOST.md when it is first.
const SAME_EACH_TIME = 'data:text/javascript,Math.random = () => 0';

/** What a tool prints as JSON; a non-zero exit code is its opinion of the score. */
const json = async (...args) => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', SAME_EACH_TIME, ...args], { maxBuffer: 64 << 20 }).catch((error) => error);
  return JSON.parse(stdout);
};

const JUDGES = {
  afdocs: {
    wanted: 99,
    judge: async () => {
      const { results, scoring } = await json(module('afdocs/bin/afdocs.mjs'), 'check', base, '--format', 'json', '--score', '--sampling', 'deterministic', '--quiet');
      const lost = results.filter(({ status }) => ['warn', 'fail', 'error'].includes(status));
      return { total: scoring.overall, lost: lost.map(({ id, message }) => `${id}: ${message}`) };
    },
  },
  'agent-readability': {
    // Without its two wishes that contradict the interface (README.md), all there is to get.
    wanted: 92,
    judge: async () => {
      const report = await json(module('@vercel/agent-readability/dist/cli/index.cjs'), 'audit', base, '--json');
      const lost = Object.values(report.categories).flatMap(({ checks }) => checks.filter(({ passed, skipped }) => !passed && !skipped));
      return { total: report.score, lost: lost.map(({ name, tier, detail }) => `${name} (${tier}): ${detail ?? ''}`) };
    },
  },
  'agent-readiness': {
    wanted: 90,
    judge: async () => {
      const { total, checks } = score(analyze(await crawl(base)));
      return { total, lost: checks.filter(({ pass }) => !pass).map(({ label, weight }) => `${label} (${weight})`) };
    },
  },
};

const scores = [];
const findings = [];
for (const [name, { wanted, judge }] of Object.entries(JUDGES)) {
  const { total, lost } = await judge();
  scores.push(`${name} ${total}`);
  if (!(total >= wanted)) findings.push(`${name}: ${total}, not ${wanted}`, ...lost.map((line) => `  ${line}`));
}
console.log([...findings, scores.join(', ')].join('\n'));
if (findings.length) process.exitCode = 1;
