import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { createLog, type Log } from './log.ts';
import { explainMissingRight } from './missing-right.ts';
import { openWithCleanup } from './open-with-cleanup.ts';
import { formatRelease, RELEASE } from './release.ts';
import { type Environment, SettingError } from './setting-types.ts';
import { StartError } from './start-error.ts';

/** Additional fields of the log line "ready", such as addresses. */
export type ReadyFields = Readonly<Record<string, string>>;

export interface RunningProcess {
  readonly readyFields: ReadyFields;
  /** Ends the role and its running work, and closes its resources. */
  close(): Promise<void>;
}

/** Starts a role. Its resources are closed in reverse order, at the end or if the start fails. */
export type StartProcess<S> = (settings: S, log: Log, resources: AsyncDisposableStack) => Promise<ReadyFields>;

interface LogSettings {
  readonly logLevel: string;
}

/** How long a start that was interrupted by a signal may take to close its resources. */
const START_ABORT_TIMEOUT_MS = 10_000;

/** A signal arrived before the role had started. */
class InterruptedError extends Error {}

/**
 * Runs a role as this process: reads the settings, starts, and logs "ready". On SIGTERM or SIGINT, even during the
 * start, the process shuts down gracefully with exit code 0. Errors end it with exit code 1.
 * @param read throws SettingError for an invalid setting
 */
export async function runProcess<S extends LogSettings>(
  role: string,
  read: (env: Environment) => S,
  start: StartProcess<S>,
): Promise<void> {
  // Without this flag, V8 collects the complete heap for every 64 MB of buffers, which stops the event loop for up to 40 ms.
  setFlagsFromString('--external-memory-accounted-in-global-limit');
  if (process.argv.includes('--version')) {
    process.stdout.write(`${formatRelease()}\n`);
    return;
  }
  let log = createLog('info');
  try {
    const settings = read(process.env);
    log = createLog(settings.logLevel).child({ role });
    // A second signal has no effect: on Ctrl-C npm forwards the signal that the terminal has already sent.
    const stopped = new Promise<NodeJS.Signals>((resolve) => {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, resolve);
    });
    process.on('uncaughtException', (error) => exitWithError(log, error));
    process.on('unhandledRejection', (error) => exitWithError(log, error));
    const running = await openUnlessStopped(stopped, (resources) => start(settings, log, resources));
    if (running) {
      log.info({ ...running.readyFields, version: RELEASE.version, commit: RELEASE.commit }, 'ready');
      log.info({ signal: await stopped }, 'draining');
      await running.close();
    }
  } catch (error) {
    exitWithError(log, error);
  }
  log.info('stopped');
  process.exit(0);
}

/**
 * Starts a role. A signal during the start closes the resources that are already open. The process waits at most
 * `START_ABORT_TIMEOUT_MS` for this and for the interrupted start.
 * @returns undefined if a signal arrived before the start had finished
 */
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

function exitWithError(log: Log, cause: unknown): never {
  const error = explainMissingRight(cause);
  const isExpected = error instanceof SettingError || error instanceof StartError;
  log.fatal(isExpected ? {} : { err: error }, error instanceof Error ? error.message : String(error));
  process.exit(1);
}
