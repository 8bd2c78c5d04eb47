import { setTimeout as delay } from 'node:timers/promises';
import { createLog, type Log } from './log.ts';
import { openWithCleanup } from './open-all.ts';
import { type Environment, SettingError } from './setting-types.ts';
import { StartError } from './start-error.ts';

/** Further fields of the line that says "ready", such as addresses. */
export type ReadyFields = Readonly<Record<string, string>>;

/** What a role has started. */
export interface Running {
  readonly where: ReadyFields;
  /** Takes no new work, finishes or settles what runs, and releases all resources. */
  close(): Promise<void>;
}

/** Starts something; what it opens is closed in reverse order, at the end or when the start fails. */
export type StartProcess<S> = (settings: S, log: Log, opened: AsyncDisposableStack) => Promise<ReadyFields>;

/** What every program is told. */
interface Logging {
  readonly logLevel: string;
}

/** What a start that was ended by a signal may still take to close what it was opening. */
const GIVEN_UP_MS = 10_000;

/** A signal came before the role had started. */
class Interrupted extends Error {}

/**
 * Runs a role as this process: settings, start, `ready`, and an orderly end on SIGTERM or SIGINT with exit code 0, also in
 * the middle of the start.
 * @param read throws SettingError for a setting that is wrong
 */
export async function runProcess<S extends Logging>(
  role: string,
  read: (env: Environment) => S,
  start: StartProcess<S>,
): Promise<void> {
  let log = createLog('info');
  try {
    const settings = read(process.env);
    log = createLog(settings.logLevel).child({ role });
    // A second signal changes nothing: on Ctrl-C npm passes on one that the terminal has sent already.
    const stopped = new Promise<NodeJS.Signals>((resolve) => {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, resolve);
    });
    process.on('uncaughtException', (error) => fail(log, error));
    process.on('unhandledRejection', (error) => fail(log, error));
    const running = await openUnless(stopped, (opened) => start(settings, log, opened));
    if (running) {
      log.info(running.where, 'ready');
      log.info({ signal: await stopped }, 'draining');
      await running.close();
    }
  } catch (error) {
    fail(log, error);
  }
  log.info('stopped');
  process.exit(0);
}

/** @returns undefined when a signal came first: then what was opened is closed, and what is being opened if that is soon */
async function openUnless(
  stopped: Promise<unknown>,
  start: (opened: AsyncDisposableStack) => Promise<ReadyFields>,
): Promise<Running | undefined> {
  let starting: Promise<ReadyFields> | undefined;
  const interrupted = stopped.then(() => Promise.reject(new Interrupted()));
  const opening = openWithCleanup(async (opened) => {
    starting = start(opened);
    return { where: await Promise.race([starting, interrupted]) };
  });
  const closed = interrupted.catch(async () => {
    const all = Promise.allSettled([opening, starting]);
    await Promise.race([all, delay(GIVEN_UP_MS, undefined, { ref: false })]);
    return undefined;
  });
  return Promise.race([
    closed,
    opening.catch((error) => (error instanceof Interrupted ? closed : Promise.reject(error))),
  ]);
}

function fail(log: Log, error: unknown): never {
  const expected = error instanceof SettingError || error instanceof StartError;
  log.fatal(expected ? {} : { err: error }, error instanceof Error ? error.message : String(error));
  process.exit(1);
}
