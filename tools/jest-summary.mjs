import path from 'node:path';

const SLOWEST_COUNT = 10;

/** Prints the slowest specs and a last line such as `1234 passed, 0 failed` at the end of a test run. */
export default class SummaryReporter {
  onRunComplete(_contexts, results) {
    // A suite that could not run counts as one failure.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests > 0 ? `, ${results.numPendingTests} skipped` : '';
    const lines = [
      ...formatSlowest(results.testResults),
      `${results.numPassedTests} passed, ${failed} failed${skipped}`,
    ];
    process.once('exit', () => process.stdout.write(`${lines.join('\n')}\n`));
  }
}

/** Returns nothing for a run of few specs, whose times Jest prints itself. */
function formatSlowest(suites) {
  if (suites.length <= SLOWEST_COUNT) return [];
  const slowest = suites.toSorted((a, b) => b.perfStats.runtime - a.perfStats.runtime).slice(0, SLOWEST_COUNT);
  const rows = slowest.map(({ perfStats, testFilePath }) => {
    const seconds = (perfStats.runtime / 1_000).toFixed(1).padStart(7);
    return `${seconds} s  ${path.relative(process.cwd(), testFilePath)}`;
  });
  return ['The slowest specs:', ...rows];
}
