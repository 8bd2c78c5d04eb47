/**
 * Stands in for `@jest/globals`. `runner.mjs` sets these to the globals of the spec file that is running, also for
 * modules that were loaded by an earlier file.
 */
export let afterAll;
export let afterEach;
export let beforeAll;
export let beforeEach;
export let describe;
export let expect;
export let it;
export let jest;
export let test;

export function provide(globals) {
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest, test } = globals);
}
