/** Ends a test run with one plain line, `1234 passed, 0 failed`, for people and for machines. */
export default class SummaryReporter {
  onRunComplete(_contexts, results) {
    // A suite that could not even run counts as a failure.
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests > 0 ? `, ${results.numPendingTests} skipped` : '';
    this.line = `${results.numPassedTests} passed, ${failed} failed${skipped}`;
    process.once('exit', () => process.stdout.write(`${this.line}\n`));
  }
}
