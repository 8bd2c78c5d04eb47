/** Types of settings. Reading an invalid setting throws a SettingError with a sentence for the operator. */
import { X509Certificate } from 'node:crypto';
import { statSync } from 'node:fs';
import { money, type PicoUsd } from '#kernel';

/** One or more settings are invalid. The message has one sentence for each, for the operator. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
}

/** Collects all problems of settings, so that one message can list them. */
export class SettingIssues {
  private readonly messages = new Set<string>();

  /** @returns the result of `read`; undefined if it throws a SettingError, which is collected */
  tryRead<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      this.add(error.message);
      return undefined;
    }
  }

  add(...messages: readonly string[]): void {
    for (const message of messages) this.messages.add(message);
  }

  /** @throws SettingError with all collected problems */
  assertNone(): void {
    if (this.messages.size > 0) throw new SettingError([...this.messages].join(' '));
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting<T> {
  readonly variable: string;
  readonly meaning: string;
  /** The default as text, for the documentation. */
  readonly defaultValue: string;
  /** The variable with the path of a file with the value, if the value may be in a file. */
  readonly fileVariable?: string;
  /** @param hasSandbox whether the default may be an address of the sandbox; true if omitted */
  read(env: Environment, hasSandbox?: boolean): T;
}

/** Lets an operator give the value in a file, because it is secret or may contain a password. */
export function allowFile<T>(setting: Setting<T>): Setting<T> {
  return { ...setting, fileVariable: `${setting.variable}_FILE` };
}

export function readVariable(env: Environment, variable: string): string | undefined {
  const value = env[variable]?.trim();
  return value === '' ? undefined : value;
}

export function invalidSetting(variable: string, requirement: string, value: string): never {
  throw new SettingError(`${variable} must be ${requirement}, not "${value}".`);
}

export function text(variable: string, defaultValue: string, meaning: string): Setting<string> {
  return { variable, meaning, defaultValue, read: (env) => readVariable(env, variable) ?? defaultValue };
}

export function optional<T>(setting: Setting<T>): Setting<T | undefined> {
  const { variable } = setting;
  return { ...setting, defaultValue: '', read: (env) => (readVariable(env, variable) ? setting.read(env) : undefined) };
}

/** The error message does not contain the value. */
export function secret(variable: string, pattern: RegExp, requirement: string, meaning: string): Setting<string> {
  return allowFile({
    variable,
    meaning,
    defaultValue: '',
    read(env) {
      const value = readVariable(env, variable) ?? '';
      if (pattern.test(value)) return value;
      throw new SettingError(`${variable} must be ${requirement}.`);
    },
  });
}

type Range = readonly [min: number, max: number];

export function integer(variable: string, defaultValue: number, [min, max]: Range, meaning: string): Setting<number> {
  return {
    variable,
    meaning,
    defaultValue: String(defaultValue),
    read(env) {
      const value = readVariable(env, variable);
      if (value === undefined) return defaultValue;
      const number = Number(value);
      const valid = /^\d+$/.test(value) && number >= min && number <= max;
      return valid ? number : invalidSetting(variable, `an integer from ${min} to ${max}`, value);
    },
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A number of seconds, minutes, hours or days with its unit, such as `6h`; read as milliseconds. */
export function duration(
  variable: string,
  defaultValue: string,
  [minMs, maxMs]: Range,
  meaning: string,
): Setting<number> {
  return {
    variable,
    meaning,
    defaultValue,
    read(env) {
      const value = readVariable(env, variable) ?? defaultValue;
      const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(value) ?? [];
      const milliseconds = Number(count) * (UNIT_MS[unit] ?? Number.NaN);
      if (milliseconds >= minMs && milliseconds <= maxMs) return milliseconds;
      const [min, max] = [minMs, maxMs].map(formatDuration);
      return invalidSetting(variable, `a time from ${min} to ${max}, such as 30m, 6h or 1d`, value);
    },
  };
}

function formatDuration(milliseconds: number): string {
  const [unit, unitMs] = Object.entries(UNIT_MS).findLast(([, size]) => milliseconds % size === 0) ?? ['s', 1_000];
  return `${milliseconds / unitMs}${unit}`;
}

/** A day, such as `2026-11-29`. */
export function date(variable: string, meaning: string): Setting<string> {
  return {
    variable,
    meaning,
    defaultValue: '',
    read(env) {
      const value = readVariable(env, variable) ?? '';
      const instant = Date.parse(`${value}T00:00:00Z`);
      const isValid = !Number.isNaN(instant) && new Date(instant).toISOString().startsWith(`${value}T`);
      return isValid ? value : invalidSetting(variable, 'a date, such as 2026-11-29', value);
    },
  };
}

/** A non-negative decimal amount of USD. */
export function dollars(variable: string, defaultValue: string, meaning: string): Setting<PicoUsd> {
  return {
    variable,
    meaning,
    defaultValue,
    read(env) {
      const value = readVariable(env, variable) ?? defaultValue;
      const valid = /^\d{1,9}(\.\d{1,12})?$/.test(value);
      return valid ? money.parseUsd(value) : invalidSetting(variable, 'an amount of USD, such as 0.50', value);
    },
  };
}

export function choice<T extends string>(variable: string, choices: readonly [T, ...T[]], meaning: string): Setting<T> {
  return {
    variable,
    meaning,
    defaultValue: choices[0],
    read(env) {
      const value = readVariable(env, variable);
      if (value === undefined) return choices[0];
      return (
        choices.find((option) => option === value) ?? invalidSetting(variable, `one of ${choices.join(', ')}`, value)
      );
    },
  };
}

/** `true` or `false`; false by default. */
export function flag(variable: string, meaning: string): Setting<boolean> {
  const setting = choice(variable, ['false', 'true'], meaning);
  return { ...setting, read: (env) => setting.read(env) === 'true' };
}

export function url(
  variable: string,
  protocols: readonly string[],
  meaning: string,
  defaultValue = '',
): Setting<string> {
  const validate = (value: string) => {
    if (!URL.canParse(value) || !protocols.includes(new URL(value).protocol)) return false;
    const { username, password, search, hash } = new URL(value);
    return username + password + search + hash === '' || 'must be an address without a login, a query and a fragment';
  };
  return address({ variable, protocols, meaning, defaultValue, validate });
}

/** An address. `validate` returns whether it is valid, or the end of a sentence that says what is invalid. */
export function address(setting: {
  readonly variable: string;
  readonly protocols: readonly string[];
  readonly meaning: string;
  readonly defaultValue: string;
  validate(value: string): boolean | string;
}): Setting<string> {
  const { variable, protocols, meaning, defaultValue, validate } = setting;
  const requirement = `an address that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`;
  return {
    variable,
    meaning,
    defaultValue,
    read(env) {
      const value = readVariable(env, variable) ?? defaultValue;
      const result = validate(value);
      if (typeof result === 'string') throw new SettingError(`${variable} ${result}.`);
      if (!result) invalidSetting(variable, requirement, redactSecrets(value));
      return value.replace(/\/+$/, '');
    },
  };
}

/** Values separated by commas; none by default. */
export function list(
  variable: string,
  isValid: (value: string) => boolean,
  requirement: string,
  meaning: string,
): Setting<readonly string[]> {
  return {
    variable,
    meaning,
    defaultValue: '',
    read(env) {
      const value = readVariable(env, variable);
      const items = value?.split(',').map((item) => item.trim()) ?? [];
      return items.every(isValid) ? items : invalidSetting(variable, requirement, value ?? '');
    },
  };
}

/** Names and values, such as `btc=2,ltc=6`. */
export function pairs(variable: string, values: RegExp, meaning: string): Setting<Readonly<Record<string, string>>> {
  return {
    variable,
    meaning,
    defaultValue: '',
    read(env) {
      const value = readVariable(env, variable);
      const parts = (value?.split(',') ?? []).map((pair) => pair.trim().split('='));
      const valid = parts.every(
        ([name = '', item = '', rest]) => name !== '' && values.test(item) && rest === undefined,
      );
      return valid ? Object.fromEntries(parts) : invalidSetting(variable, 'pairs such as btc=…,ltc=…', value ?? '');
    },
  };
}

/** Hexadecimal digits. The value is secret, so the error message does not contain it. */
export function hex(variable: string, bytes: number | undefined, meaning: string, defaultValue = ''): Setting<string> {
  return allowFile({
    variable,
    meaning,
    defaultValue,
    read(env) {
      const value = (readVariable(env, variable) ?? defaultValue).toLowerCase();
      if (/^([0-9a-f]{2})+$/.test(value) && (bytes === undefined || value.length === bytes * 2)) return value;
      throw new SettingError(`${variable} must be ${bytes === undefined ? '' : `${bytes * 2} `}hexadecimal digits.`);
    },
  });
}

/** Different keys of one length, separated by commas. They are secret, so the error message does not contain them. */
export function keyRing(variable: string, bytes: number, meaning: string): Setting<readonly string[]> {
  return allowFile({
    variable,
    meaning,
    defaultValue: '',
    read(env) {
      const keys = (readVariable(env, variable) ?? '').split(',').map((key) => key.trim().toLowerCase());
      const valid = keys.every((key) => new RegExp(`^[0-9a-f]{${bytes * 2}}$`).test(key));
      if (valid && new Set(keys).size === keys.length) return keys;
      const requirement = `${bytes * 2} hexadecimal digits, or several different keys of this form separated by commas`;
      throw new SettingError(`${variable} must be ${requirement}.`);
    },
  });
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** A file with certificates in PEM format, such as the current and the next one. The value is these, not the path. */
export function certificates(variable: string, meaning: string): Setting<readonly string[]> {
  return {
    variable,
    meaning,
    defaultValue: '',
    fileVariable: variable,
    read(env) {
      const text = readVariable(env, variable) ?? '';
      try {
        const matches = text.match(CERTIFICATE) ?? [];
        for (const match of matches) new X509Certificate(match);
        if (matches.length > 0) return matches;
      } catch {} // the same error as for a file without a certificate
      throw new SettingError(`${variable} must be a file with a certificate in PEM format.`);
    },
  };
}

export function directory(variable: string, meaning: string): Setting<string> {
  return {
    variable,
    meaning,
    defaultValue: '',
    read(env) {
      const name = readVariable(env, variable) ?? '';
      const isDirectory = statSync(name, { throwIfNoEntry: false })?.isDirectory() === true;
      return isDirectory ? name : invalidSetting(variable, 'a directory', name);
    },
  };
}

/** Removes user and password, also from text that is not a valid address. */
function redactSecrets(value: string): string {
  return value.replace(/^([\w+.-]+:\/\/)?.*@/s, '$1***@');
}
