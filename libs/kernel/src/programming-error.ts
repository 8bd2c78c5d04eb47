const PROGRAMMING_ERRORS = [TypeError, ReferenceError, RangeError, SyntaxError];

/**
 * Whether an error shows a mistake in the program, so that another attempt would fail in the same way. Includes failed
 * assertions of `node:assert`. Not for errors of `fetch`, which rejects with a TypeError if the network fails, nor for
 * errors of a parser of external text.
 */
export function isProgrammingError(error: unknown): boolean {
  if (PROGRAMMING_ERRORS.some((ErrorClass) => error instanceof ErrorClass)) return true;
  return error instanceof Error && (error as { readonly code?: unknown }).code === 'ERR_ASSERTION';
}
