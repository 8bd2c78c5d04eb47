/** Prints one summary line at the end of a test run: `1234 passed, 0 failed`. */
export default class SummaryReporter {
  onRunComplete(_contexts, results) {
    // A suite that could not run counts as one failure.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests > 0 ? `, ${results.numPendingTests} skipped` : '';
    this.line = `${results.numPassedTests} passed, ${failed} failed${skipped}`;
    process.once('exit', () => process.stdout.write(`${this.line}\n`));
  }
}
