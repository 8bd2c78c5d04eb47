/** How settings of each kind are read. One that is wrong is a sentence for a person. */
import { readFileSync, statSync } from 'node:fs';
import { money, type PicoUsd } from '#kernel';

/** Settings are wrong; the message is a sentence for a person about each. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
}

/** Collects what is wrong, so that a person sees all of it at once. */
export class SettingIssues {
  private readonly sentences = new Set<string>();

  /** @returns what `read` returns; undefined when it finds something wrong */
  of<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      this.add(error.message);
      return undefined;
    }
  }

  add(...sentences: readonly string[]): void {
    for (const each of sentences) this.sentences.add(each);
  }

  /** @throws SettingError with all that was found */
  assertNone(): void {
    if (this.sentences.size > 0) throw new SettingError([...this.sentences].join(' '));
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Setting<T> {
  readonly variable: string;
  readonly meaning: string;
  /** The default, as the documentation shows it. */
  readonly byDefault: string;
  read(env: Environment): T;
}

export function readVariable(env: Environment, variable: string): string | undefined {
  const value = env[variable]?.trim();
  return value === '' ? undefined : value;
}

export function invalidSetting(variable: string, must: string, value: string): never {
  throw new SettingError(`${variable} must be ${must}, not "${value}".`);
}

export function text(variable: string, byDefault: string, meaning: string): Setting<string> {
  return { variable, meaning, byDefault, read: (env) => readVariable(env, variable) ?? byDefault };
}

export function optional<T>(setting: Setting<T>): Setting<T | undefined> {
  const { variable } = setting;
  return { ...setting, byDefault: '', read: (env) => (readVariable(env, variable) ? setting.read(env) : undefined) };
}

/** The value is not repeated. */
export function secret(variable: string, pattern: RegExp, must: string, meaning: string): Setting<string> {
  return {
    variable,
    meaning,
    byDefault: '',
    read(env) {
      const value = readVariable(env, variable) ?? '';
      if (pattern.test(value)) return value;
      throw new SettingError(`${variable} must be ${must}.`);
    },
  };
}

type Range = readonly [least: number, most: number];

export function integer(variable: string, byDefault: number, [least, most]: Range, meaning: string): Setting<number> {
  return {
    variable,
    meaning,
    byDefault: String(byDefault),
    read(env) {
      const value = readVariable(env, variable);
      if (value === undefined) return byDefault;
      const number = Number(value);
      const valid = /^\d+$/.test(value) && number >= least && number <= most;
      return valid ? number : invalidSetting(variable, `a whole number from ${least} to ${most}`, value);
    },
  };
}

/** USD as a decimal from 0. */
export function dollars(variable: string, byDefault: string, meaning: string): Setting<PicoUsd> {
  return {
    variable,
    meaning,
    byDefault,
    read(env) {
      const value = readVariable(env, variable) ?? byDefault;
      const valid = /^\d{1,9}(\.\d{1,12})?$/.test(value);
      return valid ? money.parseUsd(value) : invalidSetting(variable, 'an amount of USD, such as 0.50', value);
    },
  };
}

export function choice<T extends string>(variable: string, choices: readonly [T, ...T[]], meaning: string): Setting<T> {
  return {
    variable,
    meaning,
    byDefault: choices[0],
    read(env) {
      const value = readVariable(env, variable);
      if (value === undefined) return choices[0];
      return choices.find((each) => each === value) ?? invalidSetting(variable, `one of ${choices.join(', ')}`, value);
    },
  };
}

/** Off unless it is said. */
export function flag(variable: string, meaning: string): Setting<boolean> {
  const setting = choice(variable, ['false', 'true'], meaning);
  return { ...setting, read: (env) => setting.read(env) === 'true' };
}

export function url(variable: string, protocols: readonly string[], meaning: string, byDefault = ''): Setting<string> {
  const isRight = (value: string) => URL.canParse(value) && protocols.includes(new URL(value).protocol);
  return address({ variable, protocols, meaning, byDefault, isRight });
}

/** An address that is right where `isRight` says so; a sentence's end instead says what is wrong. */
export function address(setting: {
  readonly variable: string;
  readonly protocols: readonly string[];
  readonly meaning: string;
  readonly byDefault: string;
  isRight(value: string): boolean | string;
}): Setting<string> {
  const { variable, protocols, meaning, byDefault, isRight } = setting;
  const must = `an address that starts with ${protocols.map((each) => `${each}//`).join(' or ')}`;
  return {
    variable,
    meaning,
    byDefault,
    read(env) {
      const value = readVariable(env, variable) ?? byDefault;
      const right = isRight(value);
      if (typeof right === 'string') throw new SettingError(`${variable} ${right}.`);
      if (!right) invalidSetting(variable, must, withoutSecrets(value));
      return value.replace(/\/+$/, '');
    },
  };
}

/** Words with commas between them; none by default. */
export function list(
  variable: string,
  isRight: (word: string) => boolean,
  must: string,
  meaning: string,
): Setting<readonly string[]> {
  return {
    variable,
    meaning,
    byDefault: '',
    read(env) {
      const value = readVariable(env, variable);
      const words = value?.split(',').map((each) => each.trim()) ?? [];
      return words.every(isRight) ? words : invalidSetting(variable, must, value ?? '');
    },
  };
}

/** Names and values, such as `btc=2,ltc=6`. */
export function pairs(variable: string, values: RegExp, meaning: string): Setting<Readonly<Record<string, string>>> {
  return {
    variable,
    meaning,
    byDefault: '',
    read(env) {
      const value = readVariable(env, variable);
      const parts = (value?.split(',') ?? []).map((each) => each.trim().split('='));
      const valid = parts.every(([name = '', of = '', more]) => name !== '' && values.test(of) && more === undefined);
      return valid ? Object.fromEntries(parts) : invalidSetting(variable, 'pairs such as btc=…,ltc=…', value ?? '');
    },
  };
}

/** The value is secret, so it is not repeated. */
export function hex(variable: string, bytes: number | undefined, meaning: string, byDefault = ''): Setting<string> {
  return {
    variable,
    meaning,
    byDefault,
    read(env) {
      const value = (readVariable(env, variable) ?? byDefault).toLowerCase();
      if (/^([0-9a-f]{2})+$/.test(value) && (bytes === undefined || value.length === bytes * 2)) return value;
      throw new SettingError(`${variable} must be ${bytes === undefined ? '' : `${bytes * 2} `}hexadecimal digits.`);
    },
  };
}

/** Keys of one length with commas between them, none twice. They are secret, so they are not repeated. */
export function ring(variable: string, bytes: number, meaning: string): Setting<readonly string[]> {
  return {
    variable,
    meaning,
    byDefault: '',
    read(env) {
      const keys = (readVariable(env, variable) ?? '').split(',').map((each) => each.trim().toLowerCase());
      const valid = keys.every((each) => new RegExp(`^[0-9a-f]{${bytes * 2}}$`).test(each));
      if (valid && new Set(keys).size === keys.length) return keys;
      const must = `${bytes * 2} hexadecimal digits, or several such keys with commas between them`;
      throw new SettingError(`${variable} must be ${must}.`);
    },
  };
}

export function file(variable: string, meaning: string): Setting<string> {
  return existing(variable, 'a file that can be read', (name) => readFileSync(name) !== undefined, meaning);
}

export function directory(variable: string, meaning: string): Setting<string> {
  return existing(variable, 'a directory', (name) => statSync(name).isDirectory(), meaning);
}

/** The name of an existing file or directory. */
function existing(
  variable: string,
  what: string,
  isThere: (name: string) => boolean,
  meaning: string,
): Setting<string> {
  return {
    variable,
    meaning,
    byDefault: '',
    read(env) {
      const name = readVariable(env, variable) ?? '';
      try {
        if (isThere(name)) return name;
      } catch {} // treated as missing
      return invalidSetting(variable, what, name);
    },
  };
}

/** Also for text that was only meant to be an address. */
function withoutSecrets(value: string): string {
  return value.replace(/^([\w+.-]+:\/\/)?.*@/, '$1***@');
}
