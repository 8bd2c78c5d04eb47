import { type Logger, pino } from 'pino';

export type Log = Logger;

// The reader of the log may be gone; that is no reason to fail, or to wait forever as pino's own writer does.
process.stdout.on('error', () => {});

const MOST_CAUSES = 8;

/**
 * An error and its causes without what else they have as properties: a parser's holds what it could not read, a broken
 * answer's what had come of it.
 */
export function told(error: unknown, causes = MOST_CAUSES): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, stack, cause } = error;
  const { code, status, errors } = error as { code?: unknown; status?: unknown; errors?: unknown };
  return {
    ...{ type: error.constructor.name, message, stack, code, status },
    ...(Array.isArray(errors) && causes > 0 ? { errors: errors.map((each) => told(each, 0)) } : {}),
    ...(cause === undefined || causes === 0 ? {} : { cause: told(cause, causes - 1) }),
  };
}

/** A log of one JSON object per line on standard output: `level`, `time`, `msg`, and what belongs to the line. */
export function createLog(level: string): Log {
  const options = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: (error: unknown) => told(error) },
  };
  return pino(options, process.stdout);
}
