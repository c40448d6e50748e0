// axe-core over what a browser's page shows now, light and dark, narrow and wide.
import axe from 'axe-core';

const WIDTHS = [1280, 320];
const SCHEMES = ['light', 'dark'];
/** In dark, what depends on colours. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block'];
const OPTIONS = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  rules: { 'target-size': { enabled: true } },
  resultTypes: ['violations'],
};

/** What axe-core finds, a text each, but for what is in elements of these selectors. The page is narrow after that. */
export async function judge(page, name, exclude = []) {
  const findings = [];
  await page.evaluate(axe.source);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    for (const colorScheme of SCHEMES) {
      await page.emulateMedia({ colorScheme });
      const options = colorScheme === 'light' ? OPTIONS : { ...OPTIONS, runOnly: { type: 'rule', values: OF_COLOURS } };
      const { violations } = await page.evaluate(([exclude, options]) => globalThis.axe.run({ exclude }, options), [exclude, options]);
      for (const { id, help, nodes } of violations)
        for (const { target, failureSummary } of nodes)
          findings.push(`${name}, ${colorScheme}, ${width} px: ${id}: ${help}\n  ${target.join(' ')}\n  ${failureSummary.replaceAll('\n', '\n  ')}`);
    }
  }
  return findings;
}
