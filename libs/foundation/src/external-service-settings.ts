/** Settings of external services. The sandbox simulates most services whose settings are not set. */
import { z } from 'zod';
import {
  type Environment,
  integer,
  list,
  optional,
  parseSetting,
  readVariable,
  type Setting,
  SettingError,
  secret,
  text,
  url,
} from './setting-types.ts';

/** A credential that the sandbox accepts. */
export const SANDBOX_KEY = 'sandbox';

export const SANDBOX_SETTINGS = {
  port: integer('SANDBOX_PORT', 3100, [0, 65_535], 'Port of the sandbox, which simulates external services'),
  url: optional(
    url('SANDBOX_URL', 'Address of the sandbox, which simulates external services; unset: this host at SANDBOX_PORT'),
  ),
};

export function toSandboxUrl(env: Environment): string {
  return parseSetting(SANDBOX_SETTINGS.url, env) ?? `http://127.0.0.1:${parseSetting(SANDBOX_SETTINGS.port, env)}`;
}

/** Creates a setting for an address whose default is a path of the sandbox. */
function createSandboxUrlSetting(variable: string, path: string, meaning: string): Setting<string> {
  const defaultValue = `http://127.0.0.1:3100${path}`;
  return { ...url(variable, meaning), defaultValue, getDefault: (env) => toSandboxUrl(env) + path };
}

/** If any of these is set, payments are not simulated, because the money of the sandbox is free. */
export const PAYMENT_BACKEND_VARIABLES = [
  'LND_REST_URL',
  'BTCPAY_URL',
  'STRIPE_SECRET_KEY',
  'MONERO_WALLET_RPC_URL',
  'PHOENIXD_URL',
  'CLN_REST_URL',
  'NWC_RECEIVE_URL',
];

/**
 * Disables the default of a setting, an address of the sandbox, if the sandbox is not used, or if `isElsewhere` finds
 * a service with which the sandbox must not be combined.
 */
function unsetIfElsewhere<T>(setting: Setting<T>, isElsewhere: (env: Environment) => boolean): Setting<T | undefined> {
  return {
    ...setting,
    getDefault: (env, hasSandbox) =>
      hasSandbox && !isElsewhere(env) ? setting.getDefault?.(env, hasSandbox) : undefined,
  };
}

/** Creates the address setting of a payment backend. The default is the sandbox unless another backend is set. */
export function createPaymentUrlSetting(variable: string, path: string, meaning: string): Setting<string | undefined> {
  const setting = createSandboxUrlSetting(
    variable,
    path,
    `${meaning}; no default if another payment backend or a provider is set`,
  );
  return unsetIfElsewhere(setting, hasPaymentBackend);
}

export function hasPaymentBackend(env: Environment): boolean {
  return PAYMENT_BACKEND_VARIABLES.some((variable) => readVariable(env, variable));
}

const STRIPE_KEY = 'STRIPE_SECRET_KEY';
export const SANDBOX_STRIPE_KEY = 'sk_test_sandbox';

/** Undefined: no card payments. The default is a key of the sandbox unless another payment backend is set. */
export function createStripeKeySetting(): Setting<string | undefined> {
  const meaning =
    'API key of a Stripe account that receives card payments, preferably restricted; no default if another payment backend or a provider is set';
  const setting = secret(
    STRIPE_KEY,
    /^(sk|rk)_\w+$/,
    'a secret or restricted key that begins with sk_ or rk_',
    meaning,
  );
  const defaultValue = SANDBOX_STRIPE_KEY;
  return unsetIfElsewhere({ ...setting, defaultValue, getDefault: () => defaultValue }, hasPaymentBackend);
}

/** The default is Stripe's own address if a key is set, else the sandbox. */
export function createStripeUrlSetting(): Setting<string> {
  const setting = createSandboxUrlSetting(
    'STRIPE_API_URL',
    '',
    'Address of the Stripe API; if STRIPE_SECRET_KEY is set, the default is https://api.stripe.com',
  );
  return {
    ...setting,
    schema: setting.schema.refine(
      (address) => new URL(address).pathname === '/',
      "must be an address without a path: Stripe's library uses its own paths",
    ),
    getDefault: (env, hasSandbox) =>
      readVariable(env, STRIPE_KEY) || !hasSandbox ? 'https://api.stripe.com' : toSandboxUrl(env),
  };
}

/** The default is the relay of the sandbox unless a payment backend is set. */
export function createPrivateRelaysSetting(variable: string, meaning: string): Setting<readonly string[]> {
  return {
    ...list(
      variable,
      z.url({ protocol: /^wss?$/ }),
      'addresses that start with ws:// or wss://',
      `${meaning}; no default if a payment backend or a provider is set`,
    ),
    defaultValue: 'ws://127.0.0.1:3100/relay',
    getDefault: (env, hasSandbox) =>
      hasPaymentBackend(env) || !hasSandbox ? [] : [`${toSandboxUrl(env).replace(/^http/, 'ws')}/relay`],
  };
}

/** If any of these is set, the sandbox provides no rates: two simulated sources would agree against the real one. */
export const RATE_SOURCE_VARIABLES = ['KRAKEN_URL', 'COINBASE_URL', 'COINGECKO_URL'];

export function createRateSourceSetting(variable: string, path: string, name: string): Setting<string | undefined> {
  const meaning = `Address of ${name}, a source of exchange rates; no default if another source, a payment backend or a provider is set`;
  const isElsewhere = (env: Environment) =>
    RATE_SOURCE_VARIABLES.some((source) => readVariable(env, source)) || hasPaymentBackend(env);
  return unsetIfElsewhere(createSandboxUrlSetting(variable, path, meaning), isElsewhere);
}

/** Creates a setting that a real service requires together with its address. The sandbox accepts any value. */
export function requiredWithUrl(address: string, variable: string, meaning: string): Setting<string> {
  const getDefault = (env: Environment) => {
    assertNotRequired(variable, address, env);
    return SANDBOX_KEY;
  };
  return { ...text(variable, SANDBOX_KEY, meaning), getDefault };
}

/** Creates a setting that a real service accepts together with its address, but does not require. */
export function optionalWithUrl(address: string, variable: string, meaning: string): Setting<string | undefined> {
  const getDefault = (env: Environment) => (readVariable(env, address) ? undefined : SANDBOX_KEY);
  return { ...text(variable, SANDBOX_KEY, meaning), getDefault };
}

/** Makes a setting without a default required if the variable `address` is set, unless `alternative` is set. */
export function requiredWith<T>(address: string, setting: Setting<T>, alternative?: string): Setting<T | undefined> {
  const getDefault = (env: Environment) => {
    if (alternative === undefined || !readVariable(env, alternative)) assertNotRequired(setting.variable, address, env);
    return undefined;
  };
  return { ...setting, getDefault };
}

function assertNotRequired(variable: string, address: string, env: Environment): void {
  if (readVariable(env, address)) throw new SettingError(`${variable} must be set if ${address} is set.`);
}
