// axe-core over what a browser's page shows now, light and dark, narrow and wide.
import axe from 'axe-core';

const WIDTHS = [320, 1280];
const SCHEMES = ['light', 'dark'];
const OPTIONS = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  rules: { 'target-size': { enabled: true } },
  resultTypes: ['violations'],
};

/** What axe-core finds, a text each. */
export async function judge(page, name) {
  const findings = [];
  await page.evaluate(axe.source);
  for (const colorScheme of SCHEMES) {
    for (const width of WIDTHS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      const { violations } = await page.evaluate((options) => globalThis.axe.run(options), OPTIONS);
      for (const { id, help, nodes } of violations)
        for (const { target, failureSummary } of nodes)
          findings.push(`${name}, ${colorScheme}, ${width} px: ${id}: ${help}\n  ${target.join(' ')}\n  ${failureSummary.replaceAll('\n', '\n  ')}`);
    }
  }
  return findings;
}
