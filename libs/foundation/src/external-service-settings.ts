/** Settings of the outside world, which the sandbox plays where they are not set. */
import {
  type Environment,
  integer,
  invalidSetting,
  optional,
  readVariable,
  type Setting,
  SettingError,
  secret,
  url,
} from './setting-types.ts';

/** A credential that the sandbox accepts. */
export const SANDBOX_KEY = 'sandbox';

/** Where the sandbox is. */
export const SANDBOX_SETTINGS = {
  port: integer('SANDBOX_PORT', 3100, [0, 65_535], 'Port of the simulated outside world'),
  url: optional(
    url(
      'SANDBOX_URL',
      ['http:', 'https:'],
      'Address of the simulated outside world; unset: this host, at SANDBOX_PORT',
    ),
  ),
};

export function toSandboxUrl(env: Environment): string {
  return SANDBOX_SETTINGS.url.read(env) ?? `http://127.0.0.1:${SANDBOX_SETTINGS.port.read(env)}`;
}

/** The default is the sandbox. */
export function createSandboxUrlSetting(variable: string, path: string, meaning: string): Setting<string> {
  const setting = url(variable, ['http:', 'https:'], meaning);
  return {
    ...setting,
    defaultValue: `http://127.0.0.1:3100${path}`,
    read: (env) => (readVariable(env, variable) ? setting.read(env) : toSandboxUrl(env) + path),
  };
}

/** Where real payments can be taken, nothing is taken in the sandbox: its money is free. */
export const PAYMENT_BACKEND_VARIABLES = [
  'LND_REST_URL',
  'BTCPAY_URL',
  'STRIPE_SECRET_KEY',
  'MONERO_WALLET_RPC_URL',
  'PHOENIXD_URL',
  'CLN_REST_URL',
  'NWC_RECEIVE_URL',
];

/** What is set, or else the sandbox, as long as nothing is set that must not stand beside it. */
function unsetIfElsewhere<T>(setting: Setting<T>, isElsewhere: (env: Environment) => boolean): Setting<T | undefined> {
  const { variable, read } = setting;
  return { ...setting, read: (env) => (readVariable(env, variable) || !isElsewhere(env) ? read(env) : undefined) };
}

/** A back end that takes payments. The default is the sandbox, as long as no other is set. */
export function createPaymentUrlSetting(variable: string, path: string, meaning: string): Setting<string | undefined> {
  const setting = createSandboxUrlSetting(variable, path, `${meaning}; none as soon as another way to be paid is set`);
  return unsetIfElsewhere(setting, hasRealPaymentBackend);
}

export function hasRealPaymentBackend(env: Environment): boolean {
  return PAYMENT_BACKEND_VARIABLES.some((variable) => readVariable(env, variable));
}

const STRIPE_KEY = 'STRIPE_SECRET_KEY';
export const SANDBOX_STRIPE_KEY = 'sk_test_sandbox';

/** Undefined: no cards are taken. The default is one of the sandbox, as long as no other back end is set. */
export function createStripeKeySetting(): Setting<string | undefined> {
  const defaultValue = SANDBOX_STRIPE_KEY;
  const meaning =
    'Key of a Stripe account that takes cards, best a restricted one; none as soon as another way to be paid is set';
  const setting = secret(
    STRIPE_KEY,
    /^(sk|rk)_\w+$/,
    'a secret or restricted key, which begins with sk_ or rk_',
    meaning,
  );
  const getDefaultKey = (env: Environment) => (hasRealPaymentBackend(env) ? undefined : defaultValue);
  return {
    ...setting,
    defaultValue,
    read: (env) => (readVariable(env, STRIPE_KEY) ? setting.read(env) : getDefaultKey(env)),
  };
}

/** With a key it is Stripe's own; without, the sandbox. */
export function createStripeUrlSetting(): Setting<string> {
  const variable = 'STRIPE_API_URL';
  const setting = createSandboxUrlSetting(variable, '', 'Address of its API; unset: Stripe’s own where there is a key');
  return {
    ...setting,
    read(env) {
      if (readVariable(env, STRIPE_KEY) && !readVariable(env, variable)) return 'https://api.stripe.com';
      const address = setting.read(env);
      if (!readVariable(env, variable) || new URL(address).pathname === '/') return address;
      throw new SettingError(`${variable} must be an address without a path: Stripe's library knows none but its own.`);
    },
  };
}

/** The default is that of the sandbox, as long as payments are taken there. */
export function createPrivateRelaysSetting(variable: string, meaning: string): Setting<readonly string[]> {
  const getSandboxRelays = (env: Environment) =>
    hasRealPaymentBackend(env) ? [] : [`${toSandboxUrl(env).replace(/^http/, 'ws')}/relay`];
  const isRelay = (relay: string) => URL.canParse(relay) && ['ws:', 'wss:'].includes(new URL(relay).protocol);
  return {
    variable,
    meaning: `${meaning}; none by default as soon as a way to be paid is set`,
    defaultValue: 'ws://127.0.0.1:3100/relay',
    read(env) {
      const value = readVariable(env, variable);
      if (value === undefined) return getSandboxRelays(env);
      const relays = value.split(',').map((relay) => relay.trim());
      return relays.every(isRelay)
        ? relays
        : invalidSetting(variable, 'addresses that start with ws:// or wss://', value);
    },
  };
}

/** Prices of the sandbox never stand beside real ones, since two of them would agree, and never value real payments. */
export const RATE_SOURCE_VARIABLES = ['KRAKEN_URL', 'COINBASE_URL', 'COINGECKO_URL'];

export function createRateSourceSetting(variable: string, path: string, name: string): Setting<string | undefined> {
  const meaning = `Address of ${name}, as a source of exchange rates; none as soon as another source or a way to be paid is set`;
  const isElsewhere = (env: Environment) =>
    RATE_SOURCE_VARIABLES.some((source) => readVariable(env, source)) || hasRealPaymentBackend(env);
  return unsetIfElsewhere(createSandboxUrlSetting(variable, path, meaning), isElsewhere);
}

/** What goes with the address of a back end. The sandbox takes any, a real one must be told. */
export function requiredWithUrl(address: string, variable: string, meaning: string): Setting<string> {
  const setting = optionalWithUrl(address, variable, meaning);
  return {
    ...setting,
    read(env) {
      const value = setting.read(env);
      if (value !== undefined) return value;
      throw new SettingError(`${variable} must be set where ${address} is.`);
    },
  };
}

/** The same, for what a real one can do without. */
export function optionalWithUrl(address: string, variable: string, meaning: string): Setting<string | undefined> {
  const read = (env: Environment) =>
    readVariable(env, variable) ?? (readVariable(env, address) ? undefined : SANDBOX_KEY);
  return { variable, meaning, defaultValue: SANDBOX_KEY, read };
}

/** What has no default, and is needed where the address is set. */
export function requiredWith<T>(address: string, setting: Setting<T>): Setting<T | undefined> {
  const { variable } = setting;
  return {
    ...setting,
    read(env) {
      if (readVariable(env, variable)) return setting.read(env);
      if (readVariable(env, address)) throw new SettingError(`${variable} must be set where ${address} is.`);
      return undefined;
    },
  };
}
