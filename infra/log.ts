import { type Logger, pino } from 'pino';

export type Log = Logger;

// The reader of the log may be gone; that is no reason to fail, or to wait forever as pino's own writer does.
process.stdout.on('error', () => {});

/** A log of one JSON object per line on standard output: `level`, `time`, `msg`, and what belongs to the line. */
export function createLog(level: string): Log {
  const options = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: pino.stdSerializers.errWithCause },
  };
  return pino(options, process.stdout);
}
