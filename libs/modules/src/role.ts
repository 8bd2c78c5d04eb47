import { readProviders } from '#catalogue';
import {
  type Log,
  listUnsafeSettings,
  openWithCleanup,
  type ReadyFields,
  readSettings,
  runProcess,
  type Settings,
} from '#foundation';

interface Closable {
  close(): unknown;
}

/**
 * What a process is started as, and what it must close at its end. Nest's hooks run by the distance of modules, and none
 * of them runs when a factory throws. So whatever a factory opens it hands to `closeOnExit`: it is closed in reverse order, behind
 * `app.close()` or when the start fails. Hooks only start work and drain it.
 */
export class ProcessRole {
  constructor(
    readonly name: string,
    readonly settings: Settings,
    readonly log: Log,
    private readonly resources: AsyncDisposableStack,
  ) {}

  /**
   * Closes a resource at the end of the role. Factories run side by side: what is opened when the start has already failed
   * is closed at once.
   */
  async closeOnExit<T extends Closable>(resource: T): Promise<T> {
    if (!this.resources.disposed) {
      this.resources.defer(async () => void (await resource.close()));
      return resource;
    }
    await resource.close();
    throw new Error('what was opened is not needed any more: the start has failed');
  }
}

/** Runs a role as this process. */
export function runRole(name: string, start: (role: ProcessRole) => Promise<ReadyFields>): Promise<void> {
  return runProcess(
    name,
    (env) => readSettings(env, readProviders, listUnsafeSettings),
    (settings, log, resources) => start(new ProcessRole(name, settings, log, resources)),
  );
}

/** Starts a role inside a process that is not its own: what it opens is closed by `close`. */
export function openRole<T extends object>(
  name: string,
  settings: Settings,
  log: Log,
  start: (role: ProcessRole) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  return openWithCleanup((resources) => start(new ProcessRole(name, settings, log, resources)));
}
