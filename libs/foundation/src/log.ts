import { type Logger, pino } from 'pino';

export type Log = Logger;

// The reader of the log may be gone; that is no reason to fail, or to wait forever as pino's own writer does.
process.stdout.on('error', () => {});

const MAX_CAUSES = 8;

/**
 * An error and its causes without what else they have as properties: a parser's holds what it could not read, a broken
 * answer's what had come of it.
 */
export function serializeError(error: unknown, causes = MAX_CAUSES): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { cause } = error;
  const { code, status, errors } = error as { code?: unknown; status?: unknown; errors?: unknown };
  return {
    ...{ type: error.constructor.name, ...getMessageAndStack(error), code, status },
    ...(Array.isArray(errors) && causes > 0
      ? { errors: errors.map((nestedError) => serializeError(nestedError, 0)) }
      : {}),
    ...(cause === undefined || causes === 0 ? {} : { cause: serializeError(cause, causes - 1) }),
  };
}

/** A parser says what it could not read, which others wrote. */
function getMessageAndStack(error: Error) {
  const { message, stack } = error;
  if (!(error instanceof SyntaxError)) return { message, stack };
  return { stack: stack?.slice(stack.indexOf('\n    at ')).trim() };
}

/**
 * The last step before a line is written. The id of an account from before its `credit_id` was one of its own (a random UUID, of
 * version 4) is a credential, so of those a line has the beginning alone, but for the ids of requests; API keys are not to be there at all.
 */
export function redactCredentials(line: string): string {
  return line
    .replace(/(?<!"request":")\b([0-9a-f]{8})-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/gi, '$1…')
    .replace(/\b(sk-|Bearer )[\w.-]{8,}/g, '$1…');
}

/** A log of one JSON object per line on standard output: `level`, `time`, `msg`, and what belongs to the line. */
export function createLog(level: string): Log {
  const options = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: (error: unknown) => serializeError(error) },
    hooks: { streamWrite: redactCredentials },
  };
  return pino(options, process.stdout);
}
