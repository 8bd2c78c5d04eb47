import { shareEventLoop } from '#application';
import { readProviders } from '#catalogue';
import {
  type Log,
  listUnknownSettings,
  listUnsafeSettings,
  openWithCleanup,
  type ReadyFields,
  runProcess,
  SecretWatch,
  type Settings,
  type SettingsListener,
  SettingsReader,
} from '#foundation';
import { nodeTimers } from '#runtime';

interface Closable {
  close(): unknown;
}

/**
 * The role of a process, with its settings and the resources to close at its end. Nest orders its hooks by the distance
 * of a module from the root, and runs none if a factory throws. So every factory passes its resources to `closeOnExit`.
 * These are closed in reverse order, after `app.close()` or if the start fails. Hooks only start and drain work.
 */
export class ProcessRole {
  private secretWatch: SecretWatch | undefined;

  constructor(
    readonly name: string,
    readonly settings: Settings,
    readonly log: Log,
    private readonly resources: AsyncDisposableStack,
  ) {}

  /**
   * From now on, replaces the secrets in the settings when their files change.
   * @param env the environment from which `reader` has read the settings
   */
  watchSecrets(env: NodeJS.ProcessEnv, reader: SettingsReader): SecretWatch {
    const secretWatch = new SecretWatch({ settings: this.settings, env, reader, log: this.log });
    this.resources.defer(() => secretWatch.close());
    this.secretWatch = secretWatch;
    return secretWatch;
  }

  /** Calls `listener` with changed settings before they are used. Secrets of roles that are not watched never change. */
  onSecretChange(listener: SettingsListener): void {
    this.secretWatch?.onChange(listener);
  }

  /** Calls `listener` after changed settings have come into use. */
  afterSecretChange(listener: () => void): void {
    this.secretWatch?.onApplied(listener);
  }

  /** Returns the environment variable that sets a setting: its own, or that of its file. */
  getVariable(setting: string): string {
    return this.secretWatch?.getVariable(setting) ?? setting;
  }

  /**
   * Closes a resource at the end of the role. Factories run concurrently: a resource that is opened after the start has
   * failed or was interrupted is closed at once.
   * @throws Error if the start has already failed or was interrupted
   */
  async closeOnExit<T extends Closable>(resource: T): Promise<T> {
    if (!this.resources.disposed) {
      this.resources.defer(async () => void (await resource.close()));
      return resource;
    }
    await resource.close();
    throw new Error('the resource is no longer needed: the start has failed or was interrupted');
  }
}

/** Reads the settings of processes with the shipped or their own catalogue. */
export const SETTINGS_READER = new SettingsReader(readProviders, listUnsafeSettings);

/** Runs a role as this process. */
export function runRole(name: string, start: (role: ProcessRole) => Promise<ReadyFields>): Promise<void> {
  return runProcess(
    name,
    (env) => SETTINGS_READER.read(env),
    (settings, log, resources) => {
      reportUnknownSettings(process.env, settings, log);
      shareEventLoop(nodeTimers);
      const role = new ProcessRole(name, settings, log, resources);
      role.watchSecrets(process.env, SETTINGS_READER);
      return start(role);
    },
  );
}

/** Logs a warning for each environment variable that is no setting, but was probably meant as one. */
export function reportUnknownSettings(
  env: NodeJS.ProcessEnv,
  { catalogueDir }: Pick<Settings, 'catalogueDir'>,
  log: { warn(fields: object, sentence: string): void },
): void {
  for (const sentence of listUnknownSettings(env, readProviders(catalogueDir))) log.warn({}, sentence);
}

/** Starts a role inside a process that runs several roles. `close` closes the resources of the role. */
export function openRole<T extends object>(
  name: string,
  settings: Settings,
  log: Log,
  start: (role: ProcessRole) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  shareEventLoop(nodeTimers);
  return openWithCleanup((resources) => start(new ProcessRole(name, settings, log, resources)));
}
