import { createLog, type Log } from './log.ts';
import { openTogether } from './open-together.ts';
import { readSettings, SettingError, type Settings } from './settings.ts';
import { StartError } from './start-error.ts';
import type { VendorSettings } from './vendor-settings.ts';

/** Further fields of the line that says "ready", such as addresses. */
export type Where = Readonly<Record<string, string>>;

/** What a role has started. */
export interface Running {
  readonly where: Where;
  /** Takes no new work, finishes or settles what runs, and releases all resources. */
  close(): Promise<void>;
}

/** The vendors of a catalogue's directory, for roles that call them. */
export type VendorsIn = (catalogueDir: string | undefined) => readonly VendorSettings[];

/** Starts something; what it opens is closed in reverse order, at the end or when the start fails. */
export type Start = (settings: Settings, log: Log, opened: AsyncDisposableStack) => Promise<Where>;

/** Runs a role as this process: settings, start, `ready`, and an orderly end on SIGTERM or SIGINT with exit code 0. */
export async function runProcess(role: string, start: Start, vendorsIn?: VendorsIn): Promise<void> {
  let log = createLog('info');
  try {
    const settings = readSettings(process.env, vendorsIn);
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
