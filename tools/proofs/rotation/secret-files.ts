/** The files of secrets, and the processes that read them again. */
import { mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { StartedProcess } from '../../processes.ts';
import { waitUntil } from '../role-checks.ts';

const CHANGED = 'changed secrets are in use';
const CURRENT = 'current';

/** The new values by the names of their settings. */
export type NewSecrets = Readonly<Record<string, string>>;

/** A directory with a file for each secret, all of which change at once, as in a volume of Kubernetes. */
export class SecretFiles {
  private readonly values: Record<string, string> = {};
  private versionCount = 0;

  constructor(private readonly directory: string) {}

  /** @returns the environment variables with the paths of the files */
  async create(secrets: NewSecrets): Promise<Readonly<Record<string, string>>> {
    await this.write(secrets);
    // The value of the setting of a certificate is the path of its file.
    const toVariable = (setting: string) => (setting.endsWith('_CERT') ? setting : `${setting}_FILE`);
    const toPath = (setting: string) => path.join(this.directory, CURRENT, setting);
    return Object.fromEntries(Object.keys(secrets).map((setting) => [toVariable(setting), toPath(setting)]));
  }

  /** Replaces files, and waits until all processes have logged that they use the new secrets. */
  async replace(secrets: NewSecrets, processes: readonly StartedProcess[]): Promise<void> {
    const countsBefore = processes.map((one) => countChanges(one, Object.keys(secrets)));
    await this.write(secrets);
    await waitUntil(async () =>
      processes.every((one, i) => countChanges(one, Object.keys(secrets)) > (countsBefore[i] as number)),
    );
  }

  /** Writes all secrets to a new directory, and then replaces the link to the current one. */
  private async write(secrets: NewSecrets): Promise<void> {
    Object.assign(this.values, secrets);
    const version = path.join(this.directory, `version-${++this.versionCount}`);
    await mkdir(version, { mode: 0o700 });
    for (const [setting, value] of Object.entries(this.values))
      await writeFile(path.join(version, setting), `${value}\n`, { mode: 0o600 });
    await symlink(version, `${version}.link`);
    await rename(`${version}.link`, path.join(this.directory, CURRENT));
  }
}

/** Returns how often a process has logged that it uses changed secrets of all the settings. */
function countChanges({ outputChunks }: StartedProcess, settings: readonly string[]): number {
  const lines = outputChunks.join('').split('\n');
  return lines.filter((line) => line.includes(CHANGED) && settings.every((setting) => line.includes(`"${setting}"`)))
    .length;
}
