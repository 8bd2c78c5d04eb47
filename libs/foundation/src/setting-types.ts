/** Types of settings: each has a zod schema of its text. `parseSetting` reads all of them. */
import { X509Certificate } from 'node:crypto';
import { statSync } from 'node:fs';
import { z } from 'zod';
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
  /** The default as text, also for the documentation; empty if there is none. */
  readonly defaultValue: string;
  /** The default if it depends on other settings. @throws SettingError if they require this one */
  getDefault?(env: Environment, hasSandbox: boolean): T;
  /** The variable with the path of a file with the value, if the value may be in a file. */
  readonly fileVariable?: string;
  /** Checks and converts the trimmed text; undefined if there is none. Its own messages follow the variable's name. */
  readonly schema: z.ZodType<T, string | undefined>;
  /** What the value must be, for problems for which the schema has no message. */
  readonly requirement?: string;
}

export type SettingValues<S> = { readonly [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never };

/**
 * Returns the value of a setting.
 * @param hasSandbox whether the default may be an address of the sandbox
 * @throws SettingError with a sentence for the operator, which does not contain a value that may be in a file
 */
export function parseSetting<T>(setting: Setting<T>, env: Environment, hasSandbox = true): T {
  const { variable, defaultValue, fileVariable, schema, requirement } = setting;
  const value = readVariable(env, variable);
  if (value === undefined && setting.getDefault) return setting.getDefault(env, hasSandbox);
  const error = () => `must be ${requirement}${fileVariable === undefined ? `, not "${value}"` : ''}`;
  const result = schema.safeParse(value ?? (defaultValue || undefined), { error });
  if (result.success) return result.data;
  throw new SettingError(`${variable} ${result.error.issues[0]?.message}.`);
}

/** Lets an operator give the value in a file, because it is secret or may contain a password. */
export function allowFile<T>(setting: Setting<T>): Setting<T> {
  return { ...setting, fileVariable: `${setting.variable}_FILE` };
}

export function readVariable(env: Environment, variable: string): string | undefined {
  return env[variable]?.trim() || undefined;
}

export function text(variable: string, defaultValue: string, meaning: string): Setting<string> {
  return { variable, meaning, defaultValue, schema: z.string() };
}

export function optional<T>(setting: Setting<T>): Setting<T | undefined> {
  return { ...setting, defaultValue: '', schema: setting.schema.optional() };
}

export function secret(variable: string, pattern: RegExp, requirement: string, meaning: string): Setting<string> {
  return allowFile({ variable, meaning, defaultValue: '', schema: z.string().regex(pattern), requirement });
}

type Range = readonly [min: number, max: number];

export function integer(variable: string, defaultValue: number, [min, max]: Range, meaning: string): Setting<number> {
  const schema = z.string().regex(/^\d+$/).pipe(z.coerce.number<string>().min(min).max(max));
  const requirement = `an integer from ${min} to ${max}`;
  return { variable, meaning, defaultValue: String(defaultValue), schema, requirement };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A number of seconds, minutes, hours or days with its unit, such as `6h`; read as milliseconds. */
export function duration(variable: string, defaultValue: string, range: Range, meaning: string): Setting<number> {
  const schema = z
    .string()
    .regex(/^\d{1,9}[smhd]$/)
    .transform((value) => Number.parseInt(value, 10) * (UNIT_MS[value.at(-1) as string] as number))
    .pipe(z.number().min(range[0]).max(range[1]));
  const requirement = `a time from ${range.map(formatDuration).join(' to ')}, such as 30m, 6h or 1d`;
  return { variable, meaning, defaultValue, schema, requirement };
}

function formatDuration(milliseconds: number): string {
  const [unit, unitMs] = Object.entries(UNIT_MS).findLast(([, size]) => milliseconds % size === 0) ?? ['s', 1_000];
  return `${milliseconds / unitMs}${unit}`;
}

/** A day, such as `2026-11-29`. */
export function date(variable: string, meaning: string): Setting<string> {
  return { variable, meaning, defaultValue: '', schema: z.iso.date(), requirement: 'a date, such as 2026-11-29' };
}

/** A non-negative decimal amount of USD. */
export function dollars(variable: string, defaultValue: string, meaning: string): Setting<PicoUsd> {
  const schema = z
    .string()
    .regex(/^\d{1,9}(\.\d{1,12})?$/)
    .transform((value) => money.parseUsd(value));
  return { variable, meaning, defaultValue, schema, requirement: 'an amount of USD, such as 0.50' };
}

export function choice<T extends string>(variable: string, choices: readonly [T, ...T[]], meaning: string): Setting<T> {
  const requirement = `one of ${choices.join(', ')}`;
  return { variable, meaning, defaultValue: choices[0], schema: z.enum(choices), requirement };
}

/** False by default. */
export function flag(
  variable: string,
  meaning: string,
  [no, yes]: readonly [no: string, yes: string] = ['false', 'true'],
): Setting<boolean> {
  const schema = z.stringbool({ falsy: [no], truthy: [yes], case: 'sensitive' });
  return { variable, meaning, defaultValue: no, schema, requirement: `one of ${no}, ${yes}` };
}

export function url(variable: string, meaning: string, defaultValue = ''): Setting<string> {
  return { variable, meaning, defaultValue, schema: HTTP_ADDRESS };
}

/** Shared, because the address of each provider is such a setting, and its setting is created for each read. */
const HTTP_ADDRESS = z
  .url({ protocol: /^https?$/, ...requireStart('http://', 'https://') })
  .refine((value) => {
    const { username, password, search, hash } = new URL(value);
    return username + password + search + hash === '';
  }, 'must be an address without a login, a query and a fragment')
  .transform(removeTrailingSlashes);

/** Returns parameters of a check that an address starts with one of these. The message does not contain a password. */
export function requireStart(...starts: readonly string[]) {
  const requirement = `must be an address that starts with ${starts.join(' or ')}`;
  const error = ({ input }: { readonly input?: unknown }) => `${requirement}, not "${redactSecrets(String(input))}"`;
  return { abort: true, error };
}

/** Removes user and password, also from text that is not a valid address. */
function redactSecrets(value: string): string {
  return value.replace(/^([\w+.-]+:\/\/)?.*@/s, '$1***@');
}

export function removeTrailingSlashes(address: string): string {
  return address.replace(/\/+$/, '');
}

const COMMA_SEPARATED = z.string().transform((value) => value.split(',').map((part) => part.trim()));

/** Values separated by commas; none by default. */
export function list(
  variable: string,
  element: z.ZodType<string, string>,
  requirement: string,
  meaning: string,
): Setting<readonly string[]> {
  const schema = COMMA_SEPARATED.pipe(z.array(element)).default([]);
  return { variable, meaning, defaultValue: '', schema, requirement };
}

/** Names and values, such as `btc=2,ltc=6`. */
export function pairs(variable: string, values: RegExp, meaning: string): Setting<Readonly<Record<string, string>>> {
  const schema = COMMA_SEPARATED.transform((parts) => parts.map((part) => part.split('=')))
    .pipe(z.array(z.tuple([z.string().min(1), z.string().regex(values)])))
    .transform((entries) => Object.fromEntries(entries))
    .default({});
  return { variable, meaning, defaultValue: '', schema, requirement: 'pairs such as btc=…,ltc=…' };
}

/** Hexadecimal digits, which are secret. */
export function hex(variable: string, defaultValue: string, meaning: string): Setting<string> {
  const schema = z
    .string()
    .toLowerCase()
    .regex(/^([0-9a-f]{2})+$/);
  return allowFile({ variable, meaning, defaultValue, schema, requirement: 'hexadecimal digits' });
}

/** Different keys of one length, separated by commas, which are secret. */
export function keyRing(variable: string, bytes: number, meaning: string): Setting<readonly string[]> {
  const key = z
    .string()
    .toLowerCase()
    .regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
  const schema = COMMA_SEPARATED.pipe(z.array(key)).refine((keys) => new Set(keys).size === keys.length);
  const requirement = `${bytes * 2} hexadecimal digits, or several different keys of this form separated by commas`;
  return allowFile({ variable, meaning, defaultValue: '', schema, requirement });
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----/gs;

/** A file with certificates in PEM format, such as the current and the next one. The value is these, not the path. */
export function certificates(variable: string, meaning: string): Setting<readonly string[]> {
  const schema = z
    .string()
    .transform((value): readonly string[] => value.match(CERTIFICATE) ?? [])
    .pipe(z.array(z.string().refine(isCertificate)).min(1).readonly());
  const requirement = 'a file with a certificate in PEM format';
  return { variable, meaning, defaultValue: '', fileVariable: variable, schema, requirement };
}

function isCertificate(value: string): boolean {
  try {
    return new X509Certificate(value) !== undefined;
  } catch {
    return false;
  }
}

export function directory(variable: string, meaning: string): Setting<string> {
  const schema = z.string().refine((name) => statSync(name, { throwIfNoEntry: false })?.isDirectory());
  return { variable, meaning, defaultValue: '', schema, requirement: 'a directory' };
}
