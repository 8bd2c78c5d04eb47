import { StartError } from './start-error.ts';

/** SQLSTATE insufficient_privilege. */
const INSUFFICIENT_PRIVILEGE = '42501';
const MAX_CAUSES = 8;

/** What an operator can do about a missing right. */
export const GRANT_ADVICE =
  'run "npm run grant" ("npm run grant -- --check" prints what is missing), and make the login a member of the role that it needs';

/**
 * Returns an error with one sentence for the operator if PostgreSQL rejected something because its user lacks a right,
 * also if that is only the cause of `error`. Otherwise returns `error`.
 */
export function explainMissingRight(error: unknown): unknown {
  const reason = findMissingRight(error);
  if (reason === undefined) return error;
  return new StartError(`The database user has too few rights: ${reason}; ${GRANT_ADVICE}.`, { cause: error });
}

/** Formats why a command failed, for the operator. */
export function formatFailure(error: unknown): string {
  const explained = explainMissingRight(error);
  return explained instanceof Error ? explained.message : String(explained);
}

/** Returns what PostgreSQL says about the right that its user lacks, if that caused `error`. */
export function findMissingRight(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth++) {
    if ('severity' in current && 'code' in current && current.code === INSUFFICIENT_PRIVILEGE) return current.message;
    current = current.cause;
  }
  return undefined;
}
