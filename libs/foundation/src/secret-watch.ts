/**
 * Applies secrets whose files have changed while the process runs. Consumers read a secret from the settings when they
 * use it, so most of them need no notification.
 */
import type { Log } from './log.ts';
import { type FileSetting, readSecretFile } from './secret-files.ts';
import { type Environment, SettingError } from './setting-types.ts';
import { SETTINGS, type Settings } from './settings.ts';
import type { SettingsReader } from './settings-reader.ts';
import { StartError } from './start-error.ts';

/** Files are polled, because file system notifications are lost when Kubernetes replaces links, and over networks. */
const POLL_INTERVAL_MS = 2_000;

/** Prepares the use of changed settings. Throws to reject them; it is then called again at the next poll. */
export type SettingsListener = (next: Settings) => Promise<void> | void;

export interface SecretWatchOptions {
  /** Their secrets are replaced. */
  readonly settings: Settings;
  /** The environment with the paths of the files. */
  readonly env: Environment;
  readonly reader: SettingsReader;
  readonly log: Log;
}

export class SecretWatch {
  private readonly files: readonly FileSetting[];
  private readonly listeners: SettingsListener[] = [];
  private readonly appliedListeners: (() => void)[] = [];
  private readonly reportedProblems = new Map<string, string>();
  private readonly timer: NodeJS.Timeout | undefined;
  private readonly onSignal = () => void this.poll();
  /** The environment with the contents of the files that are in use. */
  private resolved: Environment;
  private currentPoll: Promise<void> = Promise.resolve();

  constructor(private readonly options: SecretWatchOptions) {
    const { settings, env, reader } = options;
    this.files = reader.listFileSettings(env).filter(({ fileVariable }) => env[fileVariable as string]?.trim());
    this.resolved = reader.resolve(env);
    replaceSecrets(settings, reader.readResolved(this.resolved)); // a file may have changed since it was read
    if (this.files.length === 0) return;
    this.timer = setInterval(this.onSignal, POLL_INTERVAL_MS).unref();
    process.on('SIGHUP', this.onSignal);
  }

  /** Calls `listener` with settings that have changed, before these are used. */
  onChange(listener: SettingsListener): void {
    this.listeners.push(listener);
  }

  /** Calls `listener` after changed settings have come into use. */
  onApplied(listener: () => void): void {
    this.appliedListeners.push(listener);
  }

  /** Returns the environment variable that sets a setting: its own, or that of its file. */
  getVariable(setting: string): string {
    return this.files.find(({ variable }) => variable === setting)?.fileVariable ?? setting;
  }

  /** Applies the files that have changed. Polls run one after the other. */
  poll(): Promise<void> {
    this.currentPoll = this.currentPoll.then(() => this.applyChanges());
    return this.currentPoll;
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    process.off('SIGHUP', this.onSignal);
    await this.currentPoll;
  }

  private async applyChanges(): Promise<void> {
    const changes = this.files.flatMap((file) => this.readChange(file));
    if (changes.length === 0) return;
    // All at once, because a new id of a key needs the new key. One by one if this fails, so that an invalid secret
    // does not prevent the use of others.
    const applied = (await this.tryApply(changes, changes.length === 1)) ? changes : [];
    if (applied.length === 0 && changes.length > 1)
      for (const change of changes) if (await this.tryApply([change], true)) applied.push(change);
    if (applied.length === 0) return;
    this.options.log.info({ settings: applied.map(([variable]) => variable) }, 'changed secrets are in use');
    for (const listener of this.appliedListeners) listener();
  }

  private readChange(file: FileSetting): readonly (readonly [variable: string, content: string])[] {
    const { variable } = file;
    try {
      const content = readSecretFile(this.options.env, file) ?? '';
      if (content !== this.resolved[variable]) return [[variable, content]];
      this.reportedProblems.delete(variable);
    } catch (error) {
      this.reportProblem(variable, error);
    }
    return [];
  }

  /** @returns whether the new values are in use */
  private async tryApply(changes: readonly (readonly [string, string])[], isReported: boolean): Promise<boolean> {
    const { reader, settings } = this.options;
    const resolved = { ...this.resolved, ...Object.fromEntries(changes) };
    try {
      const next = reader.readResolved(resolved);
      for (const listener of this.listeners) await listener(next);
      replaceSecrets(settings, next);
      this.resolved = resolved;
      return true;
    } catch (error) {
      if (isReported) for (const [variable] of changes) this.reportProblem(variable, error);
      return false;
    }
  }

  /** Reports each problem of a setting once. */
  private reportProblem(variable: string, error: unknown): void {
    const { message } = error as Error;
    if (this.reportedProblems.get(variable) === message) return;
    this.reportedProblems.set(variable, message);
    const details = error instanceof SettingError || error instanceof StartError ? { reason: message } : { err: error };
    this.options.log.error(
      { setting: variable, ...details },
      'a changed secret is rejected; the previous one stays in use',
    );
  }
}

function replaceSecrets(settings: Settings, next: Settings): void {
  for (const [name, { fileVariable }] of Object.entries<FileSetting>(SETTINGS))
    if (fileVariable !== undefined) Object.assign(settings, { [name]: next[name as keyof Settings] });
  for (const [slug, connection] of next.providers) Object.assign(settings.providers.get(slug) ?? {}, connection);
}
