/** The files of secrets, and the processes that read them again. */
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { StartedProcess } from '../../processes.ts';
import { waitUntil } from '../role-checks.ts';

const CHANGED = 'changed secrets are in use';

/** The new values by the names of their settings. */
export type NewSecrets = Readonly<Record<string, string>>;

export class SecretFiles {
  constructor(private readonly directory: string) {}

  /** @returns the environment variable with the path of the file */
  async create(setting: string, value: string): Promise<Readonly<Record<string, string>>> {
    await this.write(setting, value);
    // The value of the setting of a certificate is the path of its file.
    return { [setting.endsWith('_CERT') ? setting : `${setting}_FILE`]: this.toPath(setting) };
  }

  /** Replaces files, and waits until all processes have logged that they use the new secrets. */
  async replace(secrets: NewSecrets, processes: Iterable<StartedProcess>): Promise<void> {
    const started = [...processes];
    const countsBefore = started.map((one) => countChanges(one, Object.keys(secrets)));
    for (const [setting, value] of Object.entries(secrets)) await this.write(setting, value);
    await waitUntil(async () =>
      started.every((one, i) => countChanges(one, Object.keys(secrets)) > (countsBefore[i] as number)),
    );
  }

  private toPath(setting: string): string {
    return path.join(this.directory, setting);
  }

  /** No process reads an incomplete file. */
  private async write(setting: string, value: string): Promise<void> {
    const draft = `${this.toPath(setting)}.draft`;
    await writeFile(draft, `${value}\n`, { mode: 0o600 });
    await rename(draft, this.toPath(setting));
  }
}

/** Returns how often a process has logged that it uses changed secrets of all the settings. */
function countChanges({ outputChunks }: StartedProcess, settings: readonly string[]): number {
  const lines = outputChunks.join('').split('\n');
  return lines.filter((line) => line.includes(CHANGED) && settings.every((setting) => line.includes(`"${setting}"`)))
    .length;
}
