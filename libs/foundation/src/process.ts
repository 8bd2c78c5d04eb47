import { setTimeout as delay } from 'node:timers/promises';
import { createLog, type Log } from './log.ts';
import { openWithCleanup } from './open-with-cleanup.ts';
import { type Environment, SettingError } from './setting-types.ts';
import { StartError } from './start-error.ts';

/** Further fields of the line that says "ready", such as addresses. */
export type ReadyFields = Readonly<Record<string, string>>;

/** What a role has started. */
export interface RunningProcess {
  readonly readyFields: ReadyFields;
  /** Takes no new work, finishes or settles what runs, and releases all resources. */
  close(): Promise<void>;
}

/** Starts something; what it opens is closed in reverse order, at the end or when the start fails. */
export type StartProcess<S> = (settings: S, log: Log, resources: AsyncDisposableStack) => Promise<ReadyFields>;

/** What every program is told. */
interface LogSettings {
  readonly logLevel: string;
}

/** What a start that was ended by a signal may still take to close what it was opening. */
const START_ABORT_TIMEOUT_MS = 10_000;

/** A signal came before the role had started. */
class InterruptedError extends Error {}

/**
 * Runs a role as this process: settings, start, `ready`, and an orderly end on SIGTERM or SIGINT with exit code 0, also in
 * the middle of the start.
 * @param read throws SettingError for a setting that is wrong
 */
export async function runProcess<S extends LogSettings>(
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
    process.on('uncaughtException', (error) => exitWithError(log, error));
    process.on('unhandledRejection', (error) => exitWithError(log, error));
    const running = await openUnlessStopped(stopped, (resources) => start(settings, log, resources));
    if (running) {
      log.info(running.readyFields, 'ready');
      log.info({ signal: await stopped }, 'draining');
      await running.close();
    }
  } catch (error) {
    exitWithError(log, error);
  }
  log.info('stopped');
  process.exit(0);
}

/** @returns undefined when a signal came first: then what was opened is closed, and what is being opened if that is soon */
async function openUnlessStopped(
  stopped: Promise<unknown>,
  start: (resources: AsyncDisposableStack) => Promise<ReadyFields>,
): Promise<RunningProcess | undefined> {
  let starting: Promise<ReadyFields> | undefined;
  const interrupted = stopped.then(() => Promise.reject(new InterruptedError()));
  const opening = openWithCleanup(async (resources) => {
    starting = start(resources);
    return { readyFields: await Promise.race([starting, interrupted]) };
  });
  const closed = interrupted.catch(async () => {
    const all = Promise.allSettled([opening, starting]);
    await Promise.race([all, delay(START_ABORT_TIMEOUT_MS, undefined, { ref: false })]);
    return undefined;
  });
  return Promise.race([
    closed,
    opening.catch((error) => (error instanceof InterruptedError ? closed : Promise.reject(error))),
  ]);
}

function exitWithError(log: Log, error: unknown): never {
  const isExpected = error instanceof SettingError || error instanceof StartError;
  log.fatal(isExpected ? {} : { err: error }, error instanceof Error ? error.message : String(error));
  process.exit(1);
}
