/**
 * Settings come from the environment and from nowhere else. Each is read once, at start-up; one that is wrong stops the
 * start with a sentence that names it. `npm run docs` writes the table in docs/settings.md from this list.
 */
import { readFileSync, statSync } from 'node:fs';

/** A setting is wrong; the message is one sentence for a person. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
}

type Environment = Readonly<Record<string, string | undefined>>;

interface Setting<T> {
  readonly variable: string;
  readonly meaning: string;
  /** The default, as the documentation shows it. */
  readonly byDefault: string;
  read(env: Environment): T;
}

export const SETTINGS = {
  port: integer('PORT', 3000, [0, 65_535], 'Port of the API'),
  host: text('HOST', '127.0.0.1', 'Address the API listens on'),
  sandboxPort: integer('SANDBOX_PORT', 3100, [0, 65_535], 'Port of the simulated outside world'),
  sandboxUrl: optional(
    url(
      'SANDBOX_URL',
      ['http:', 'https:'],
      'Address of the simulated outside world; unset: this host, at SANDBOX_PORT',
    ),
  ),
  publicBaseUrl: optional(url('PUBLIC_BASE_URL', ['http:', 'https:'], 'Address that clients reach the API at')),
  logLevel: choice(
    'LOG_LEVEL',
    ['info', 'trace', 'debug', 'warn', 'error', 'fatal'],
    'The least that is logged: trace, debug, info, warn, error or fatal',
  ),
  dataDir: text('DATA_DIR', '.data', 'Where the embedded database and a generated master key live'),
  databaseUrl: optional(url('DATABASE_URL', ['postgres:', 'postgresql:'], 'PostgreSQL; unset: an embedded one')),
  eventStoreUrl: optional(
    url('EVENTSTORE_URL', ['esdb:', 'esdb+discover:'], 'EventStoreDB; unset: the event store in PostgreSQL'),
  ),
  masterKey: optional(
    hex(
      'MASTER_KEY',
      32,
      'Seals and hashes secrets: 64 hexadecimal digits, the same for every process; unset: made in DATA_DIR',
    ),
  ),
  catalogueDir: optional(directory('CATALOGUE_DIR', 'Models and prices; unset: those that ship with the program')),
  lndUrl: inSandbox('LND_REST_URL', '/lnd', 'REST address of the LND node that invoices come from'),
  lndMacaroon: hex('LND_MACAROON', undefined, 'Its macaroon, in hexadecimal', '00'),
  lndCertificate: optional(file('LND_TLS_CERT', 'File with its TLS certificate, when that is self-signed')),
  krakenUrl: inSandbox('KRAKEN_URL', '/kraken', 'First source of exchange rates'),
  coinbaseUrl: inSandbox('COINBASE_URL', '/coinbase', 'Second source of exchange rates'),
  loneRatePercent: integer(
    'LONE_RATE_PERCENT',
    10,
    [0, 1_000],
    'By how many hundredths one source of exchange rates alone may differ from what both said in the last ten minutes',
  ),
  connectTimeoutMs: integer(
    'UPSTREAM_CONNECT_TIMEOUT_MS',
    5_000,
    [1, 600_000],
    'Longest wait for a connection to an upstream',
  ),
  idleTimeoutMs: integer(
    'UPSTREAM_IDLE_TIMEOUT_MS',
    60_000,
    [1, 3_600_000],
    'Longest silence of an upstream that has begun to generate',
  ),
  totalTimeoutMs: integer('UPSTREAM_TOTAL_TIMEOUT_MS', 600_000, [1, 3_600_000], 'Longest time for a whole answer'),
  firstCommentMs: integer(
    'STREAM_FIRST_COMMENT_MS',
    12_000,
    [1, 3_600_000],
    'How long a stream may wait for the first byte of its upstream before it begins with a comment; what fails until then has a status',
  ),
  freePerMinute: integer(
    'FREE_REQUESTS_PER_MINUTE',
    20,
    [0, 1_000_000],
    'Requests to free models that each gateway takes of an account in a minute',
  ),
  freePerDay: integer('FREE_REQUESTS_PER_DAY', 200, [0, 1_000_000], 'The same in a day'),
  drainTimeoutMs: integer(
    'DISCONNECT_DRAIN_MS',
    120_000,
    [0, 3_600_000],
    'How long an answer is read on after its client has gone',
  ),
  heldInFullTokens: integer(
    'HELD_IN_FULL_TOKENS',
    4_096,
    [0, 1_000_000],
    'Limits of output up to this are held for in full; with a larger one, or none, what is held grows with the answer',
  ),
  shutdownTimeoutMs: integer(
    'SHUTDOWN_TIMEOUT_MS',
    25_000,
    [0, 3_600_000],
    'How long running requests may take after SIGTERM',
  ),
  creditIdInference: flag(
    'ALLOW_CREDIT_ID_INFERENCE',
    'true: x-credit-id alone pays for models, past the caps of all keys',
  ),
  maxLagMs: integer(
    'READY_MAX_LAG_MS',
    5_000,
    [1, 3_600_000],
    'Projector lag up to which the gateway says it is ready',
  ),
} as const;

type Fixed = { readonly [Name in keyof typeof SETTINGS]: ReturnType<(typeof SETTINGS)[Name]['read']> };

export interface Settings extends Fixed {
  /** By the slugs of vendors; those that are missing have no credential here. */
  readonly providers: ReadonlyMap<string, Reach>;
}

/** A vendor, as far as its settings go: `<env>_BASE_URL` and `<env>_API_KEY`. */
export interface VendorSettings {
  readonly slug: string;
  readonly env: string;
  /** Its own address. */
  readonly baseUrl: string;
  /** Its path in the sandbox. */
  readonly sandboxPath: string;
}

/** The address and the credential of a vendor. */
export interface Reach {
  readonly baseUrl: string;
  readonly credential: string;
}

/** A credential that the sandbox accepts. */
const SANDBOX_KEY = 'sandbox';

/**
 * @param vendorsIn the vendors of a catalogue's directory, or of the one that is shipped; may throw what is wrong there
 * @throws SettingError
 */
export function readSettings(
  env: Environment,
  vendorsIn: (catalogueDir: string | undefined) => readonly VendorSettings[] = () => [],
): Settings {
  const fixed = Object.fromEntries(
    Object.entries(SETTINGS).map(([name, setting]) => [name, setting.read(env)]),
  ) as Fixed;
  return { ...fixed, providers: reached(env, vendorsOf(fixed, vendorsIn)) };
}

function vendorsOf(
  { catalogueDir }: Fixed,
  vendorsIn: (catalogueDir: string | undefined) => readonly VendorSettings[],
) {
  try {
    return vendorsIn(catalogueDir);
  } catch (error) {
    throw new SettingError(`The catalogue ${(error as Error).message}.`);
  }
}

/** Vendors without settings are in the sandbox, as long as no vendor has a key; else they are left out. */
function reached(env: Environment, vendors: readonly VendorSettings[]): ReadonlyMap<string, Reach> {
  const isReal = vendors.some((vendor) => given(env, `${vendor.env}_API_KEY`) !== undefined);
  return new Map(
    vendors.flatMap(({ slug, env: prefix, baseUrl: own, sandboxPath }) => {
      const key = given(env, `${prefix}_API_KEY`);
      const address = optional(url(`${prefix}_BASE_URL`, ['http:', 'https:'], '')).read(env);
      if (address === undefined && key === undefined && isReal) return [];
      const baseUrl = address ?? (key === undefined ? sandboxOf(env) + sandboxPath : own);
      return [[slug, { baseUrl, credential: key ?? SANDBOX_KEY }] as const];
    }),
  );
}

function given(env: Environment, variable: string): string | undefined {
  const value = env[variable]?.trim();
  return value === '' ? undefined : value;
}

function wrong(variable: string, must: string, value: string): never {
  throw new SettingError(`${variable} must be ${must}, not "${value}".`);
}

function text(variable: string, byDefault: string, meaning: string): Setting<string> {
  return { variable, meaning, byDefault, read: (env) => given(env, variable) ?? byDefault };
}

function optional<T>(setting: Setting<T>): Setting<T | undefined> {
  const { variable } = setting;
  return { ...setting, byDefault: '', read: (env) => (given(env, variable) ? setting.read(env) : undefined) };
}

type Range = readonly [least: number, most: number];

function integer(variable: string, byDefault: number, [least, most]: Range, meaning: string): Setting<number> {
  return {
    variable,
    meaning,
    byDefault: String(byDefault),
    read(env) {
      const value = given(env, variable);
      if (value === undefined) return byDefault;
      const number = Number(value);
      const valid = /^\d+$/.test(value) && number >= least && number <= most;
      return valid ? number : wrong(variable, `a whole number from ${least} to ${most}`, value);
    },
  };
}

function choice<T extends string>(variable: string, choices: readonly [T, ...T[]], meaning: string): Setting<T> {
  return {
    variable,
    meaning,
    byDefault: choices[0],
    read(env) {
      const value = given(env, variable);
      if (value === undefined) return choices[0];
      return choices.find((each) => each === value) ?? wrong(variable, `one of ${choices.join(', ')}`, value);
    },
  };
}

/** Off unless it is said. */
function flag(variable: string, meaning: string): Setting<boolean> {
  const setting = choice(variable, ['false', 'true'], meaning);
  return { ...setting, read: (env) => setting.read(env) === 'true' };
}

function url(variable: string, protocols: readonly string[], meaning: string, byDefault = ''): Setting<string> {
  return {
    variable,
    meaning,
    byDefault,
    read(env) {
      const value = given(env, variable) ?? byDefault;
      const valid = URL.canParse(value) && protocols.includes(new URL(value).protocol);
      if (!valid)
        wrong(
          variable,
          `an address that starts with ${protocols.map((p) => `${p}//`).join(' or ')}`,
          withoutSecrets(value),
        );
      return value.replace(/\/+$/, '');
    },
  };
}

/** The default is the sandbox. */
function inSandbox(variable: string, path: string, meaning: string): Setting<string> {
  const setting = url(variable, ['http:', 'https:'], meaning);
  return {
    ...setting,
    byDefault: `http://127.0.0.1:3100${path}`,
    read: (env) => (given(env, variable) ? setting.read(env) : sandboxOf(env) + path),
  };
}

function sandboxOf(env: Environment): string {
  return SETTINGS.sandboxUrl.read(env) ?? `http://127.0.0.1:${SETTINGS.sandboxPort.read(env)}`;
}

/** The value is secret, so it is not repeated. */
function hex(variable: string, bytes: number | undefined, meaning: string, byDefault = ''): Setting<string> {
  return {
    variable,
    meaning,
    byDefault,
    read(env) {
      const value = (given(env, variable) ?? byDefault).toLowerCase();
      if (/^([0-9a-f]{2})+$/.test(value) && (bytes === undefined || value.length === bytes * 2)) return value;
      throw new SettingError(`${variable} must be ${bytes === undefined ? '' : `${bytes * 2} `}hexadecimal digits.`);
    },
  };
}

function file(variable: string, meaning: string): Setting<string> {
  return existing(variable, 'a file that can be read', (name) => readFileSync(name) !== undefined, meaning);
}

function directory(variable: string, meaning: string): Setting<string> {
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
      const name = given(env, variable) ?? '';
      try {
        if (isThere(name)) return name;
      } catch {} // treated as missing
      return wrong(variable, what, name);
    },
  };
}

/** Also for text that was only meant to be an address. */
function withoutSecrets(value: string): string {
  return value.replace(/^([\w+.-]+:\/\/)?.*@/, '$1***@');
}
