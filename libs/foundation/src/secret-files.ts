/**
 * Reads secrets from files. `<NAME>_FILE` is the path of a file with the value of the setting `<NAME>`. The path of a
 * certificate is the value of its setting.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import {
  type Environment,
  parseSetting,
  readVariable,
  type Setting,
  SettingError,
  type SettingIssues,
} from './setting-types.ts';

/** A longer file is rejected: it is not the one that the operator meant. */
const MAX_BYTES = 64 * 1024;

/** A setting whose value may be in a file. */
export interface FileSetting {
  readonly variable: string;
  /** The variable with the path. */
  readonly fileVariable?: string | undefined;
}

/**
 * Returns the environment with the contents of files in place of their paths. Problems are collected in `issues`, and
 * do not contain the content of a file.
 */
export function resolveSecretFiles(
  env: Environment,
  settings: readonly FileSetting[],
  issues: SettingIssues,
): Environment {
  const contents = settings
    .filter(({ fileVariable }) => fileVariable !== undefined && readVariable(env, fileVariable) !== undefined)
    .map((setting) => [setting.variable, issues.tryRead(() => readSecretFile(env, setting))]);
  return { ...env, ...Object.fromEntries(contents) };
}

/** Reads one setting, whose value may be in a file. @throws SettingError if it is invalid */
export function readSetting<T>(setting: Setting<T>, env: Environment): T {
  const content = readSecretFile(env, setting);
  return parseSetting(setting, content === undefined ? env : { ...env, [setting.variable]: content });
}

/**
 * Returns the content of the file of a setting.
 * @returns undefined if no file is set
 * @throws SettingError if the file cannot be read, is empty or too long, or if the value is set as well
 */
export function readSecretFile(env: Environment, { variable, fileVariable }: FileSetting): string | undefined {
  const path = fileVariable && readVariable(env, fileVariable);
  if (!path) return undefined;
  if (fileVariable !== variable && readVariable(env, variable) !== undefined)
    throw new SettingError(`${variable} and ${fileVariable} must not both be set.`);
  const content = readStart(path) ?? invalidSetting(fileVariable, 'a file that can be read', path);
  if (content.length > MAX_BYTES) invalidSetting(fileVariable, `a file of at most ${MAX_BYTES} bytes`, path);
  const value = content.toString().trim();
  return value === '' ? invalidSetting(fileVariable, 'a file that is not empty', path) : value;
}

function invalidSetting(variable: string, requirement: string, value: string): never {
  throw new SettingError(`${variable} must be ${requirement}, not "${value}".`);
}

/** Returns at most one byte more than `MAX_BYTES`; undefined if the file cannot be read. */
function readStart(path: string): Buffer | undefined {
  try {
    const file = openSync(path, 'r');
    try {
      const buffer = Buffer.alloc(MAX_BYTES + 1);
      return buffer.subarray(0, readSync(file, buffer));
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined; // the caller names the setting
  }
}
