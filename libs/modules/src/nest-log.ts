import type { LoggerService } from '@nestjs/common';
import type { Log } from '#foundation';

/** Nest also throws the errors that it logs in these contexts. Who catches them logs them, or has expected them. */
const CONTEXTS_OF_THROWN_ERRORS = ['ExceptionHandler', 'NestApplication'];

/** Writes the messages of Nest to the log of a role, with the part of Nest that they come from as `context`. */
export class NestLog implements LoggerService {
  constructor(private readonly output: Log) {}

  fatal(message: unknown, ...details: readonly unknown[]): void {
    this.write('fatal', message, details);
  }

  error(message: unknown, ...details: readonly unknown[]): void {
    const isThrown = CONTEXTS_OF_THROWN_ERRORS.includes(String(details.at(-1)));
    this.write(isThrown ? 'debug' : 'error', message, details);
  }

  warn(message: unknown, ...details: readonly unknown[]): void {
    this.write('warn', message, details);
  }

  /** Nest logs each module and route at this level, which is of interest to developers only. */
  log(message: unknown, ...details: readonly unknown[]): void {
    this.write('debug', message, details);
  }

  debug(message: unknown, ...details: readonly unknown[]): void {
    this.write('debug', message, details);
  }

  verbose(message: unknown, ...details: readonly unknown[]): void {
    this.write('trace', message, details);
  }

  /** @param details an error, if there is one besides the message, and the context as the last element */
  private write(
    level: 'fatal' | 'error' | 'warn' | 'debug' | 'trace',
    message: unknown,
    details: readonly unknown[],
  ): void {
    const error = [message, ...details].find((detail) => detail instanceof Error);
    const text = message instanceof Error ? message.message : String(message);
    this.output[level]({ context: details.at(-1), ...(error === undefined ? {} : { err: error }) }, text);
  }
}
