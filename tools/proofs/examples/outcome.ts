/** Compares the outcomes that a script reports with the expected ones. */
import type { Example } from './example.ts';

/** What a script prints for each example. */
export type ExampleOutcome = { readonly name: string } & (
  | { readonly outcome: 'works' }
  | { readonly outcome: 'rejected'; readonly status: number; readonly message: string; readonly param?: string | null }
  | { readonly outcome: 'failed'; readonly message: string }
  /** The script has no such example. */
  | { readonly outcome: 'missing' }
);

/** Reads the outcomes from the output of a script. Lines that are not JSON objects are ignored. */
export function parseOutcomes(output: string): ReadonlyMap<string, ExampleOutcome> {
  const lines = output.split('\n').filter((line) => line.startsWith('{"name":'));
  return new Map(lines.map((line) => JSON.parse(line) as ExampleOutcome).map((outcome) => [outcome.name, outcome]));
}

/** @returns how the outcome differs from the expected one; undefined if it does not */
export function findFault(
  { name, outcome: expected }: Example,
  actual: ExampleOutcome | undefined,
): string | undefined {
  if (!actual) return `${name}: the script ended before it`;
  if (actual.outcome === 'missing') return `${name}: the script has no such example`;
  if (actual.outcome === 'failed') return `${name}: ${actual.message}`;
  if (actual.outcome === 'works') return expected === 'works' ? undefined : `${name}: works, but should be rejected`;
  const { status, message, param } = actual;
  const text = `${status} ${message} (${param ?? 'no parameter'})`;
  if (expected === 'works') return `${name}: rejected with ${text}`;
  const isNamed = `${message} ${param}`.includes(expected.names);
  return status === expected.status && isNamed ? undefined : `${name}: expected "${expected.names}", got ${text}`;
}
