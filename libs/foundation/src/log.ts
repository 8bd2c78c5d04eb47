import { type Logger, pino } from 'pino';

export type Log = Logger;

// The reader of the log may have exited. The process must then not fail. It must not wait forever either, as pino's own
// writer can, so the log is written to `process.stdout`.
process.stdout.on('error', () => {});

const MAX_CAUSES = 8;

/**
 * Converts an error and its causes for the log: only type, message, stack, code and status. Other properties may
 * contain private text: those of a parser have the text that it could not parse, those of an interrupted response its
 * received part.
 */
export function serializeError(error: unknown, causes = MAX_CAUSES): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const { cause } = error;
  const { code, status, errors } = error as { code?: unknown; status?: unknown; errors?: unknown };
  return {
    type: error.constructor.name,
    ...getMessageAndStack(error),
    code,
    status,
    ...(Array.isArray(errors) && causes > 0
      ? { errors: errors.map((nestedError) => serializeError(nestedError, 0)) }
      : {}),
    ...(cause === undefined || causes === 0 ? {} : { cause: serializeError(cause, causes - 1) }),
  };
}

/** Omits the message of a parser, because it quotes text of third parties. */
function getMessageAndStack(error: Error) {
  const { message, stack } = error;
  if (!(error instanceof SyntaxError)) return { message, stack };
  return { stack: stack?.slice(stack.indexOf('\n    at ')).trim() };
}

const OLD_CREDIT_ID =
  /(?<!"request(?:Id)?":")\b([0-9a-f]{8})-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b/gi;

/**
 * Redacts credentials as the last step before a line is written. The ids of the oldest accounts, random UUIDs of
 * version 4, are also their credit ids and so are credentials: only their first digits are logged. Request ids have the
 * same form, so the fields `request` and `requestId` are not redacted. API keys should never reach the log, but are
 * redacted too.
 */
export function redactCredentials(line: string): string {
  return line.replace(OLD_CREDIT_ID, '$1…').replace(/\b(sk-|Bearer )[\w.-]{8,}/g, '$1…');
}

/**
 * Creates a log with one JSON object per line on standard output: `level`, `time`, `msg` and the fields of the line.
 */
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
