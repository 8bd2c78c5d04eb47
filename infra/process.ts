import { createLog, type Log } from './log.ts';
import { openTogether } from './open-together.ts';
import { type Environment, SettingError } from './setting-kinds.ts';
import { StartError } from './start-error.ts';

/** Further fields of the line that says "ready", such as addresses. */
export type Where = Readonly<Record<string, string>>;

/** What a role has started. */
export interface Running {
  readonly where: Where;
  /** Takes no new work, finishes or settles what runs, and releases all resources. */
  close(): Promise<void>;
}

/** Starts something; what it opens is closed in reverse order, at the end or when the start fails. */
export type Start<S> = (settings: S, log: Log, opened: AsyncDisposableStack) => Promise<Where>;

/** What every program is told. */
interface Logging {
  readonly logLevel: string;
}

/**
 * Runs a role as this process: settings, start, `ready`, and an orderly end on SIGTERM or SIGINT with exit code 0.
 * @param read throws SettingError for a setting that is wrong
 */
export async function runProcess<S extends Logging>(
  role: string,
  read: (env: Environment) => S,
  start: Start<S>,
): Promise<void> {
  let log = createLog('info');
  try {
    const settings = read(process.env);
    log = createLog(settings.logLevel).child({ role });
    // A second signal changes nothing: on Ctrl-C npm passes on one that the terminal has sent already.
    const stopped = new Promise<string>((resolve) => {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, resolve);
    });
    process.on('uncaughtException', (error) => fail(log, error));
    process.on('unhandledRejection', (error) => fail(log, error));
    const { close, where } = await openTogether(async (opened) => ({ where: await start(settings, log, opened) }));
    log.info(where, 'ready');
    log.info({ signal: await stopped }, 'draining');
    await close();
  } catch (error) {
    fail(log, error);
  }
  log.info('stopped');
  process.exit(0);
}

function fail(log: Log, error: unknown): never {
  const expected = error instanceof SettingError || error instanceof StartError;
  log.fatal(expected ? {} : { err: error }, error instanceof Error ? error.message : String(error));
  process.exit(1);
}
