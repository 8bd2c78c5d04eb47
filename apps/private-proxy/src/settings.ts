/** The settings of the proxy, from the environment. An invalid one prevents the start; the error names it. */
import {
  choice,
  type Environment,
  integer,
  optional,
  readSetting,
  type Setting,
  SettingError,
  secret,
  text,
  url,
} from '#foundation/program';
import { MODEL_ID_PATTERN } from './gateway-client.ts';

const REPOSITORIES = /^[\w.-]+\/[\w.-]+(\s*,\s*[\w.-]+\/[\w.-]+){0,31}$/;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export const PROXY_SETTINGS = {
  apiKey: secret(
    'PPQ_API_KEY',
    /^sk-[\w-]+$/,
    'an API key of the gateway, which starts with sk-',
    'API key of an account at the gateway, which pays for all requests; required',
  ),
  port: integer('PORT', 8787, [0, 65_535], 'Port of the proxy, which listens on 127.0.0.1 only'),
  gateway: toGatewaySetting(
    url(
      'PPQ_API_BASE',
      ['http:', 'https:'],
      'URL of the gateway, without /v1; http: only for a gateway on this host',
      'http://127.0.0.1:3000',
    ),
  ),
  defaultModel: optional(
    withPattern(
      MODEL_ID_PATTERN,
      'the id of a model',
      text(
        'PRIVATE_MODEL',
        '',
        'Private model for model names that are not private, such as claude-…; unset: such names are rejected',
      ),
    ),
  ),
  repositories: toListSetting(
    withPattern(
      REPOSITORIES,
      'GitHub repositories as owner/name, separated by commas',
      text(
        'ENCLAVE_REPOSITORY',
        'tinfoilsh/confidential-model-router',
        'GitHub repositories whose signed releases enclaves must run, separated by commas',
      ),
    ),
  ),
  allowUnattested: toBooleanSetting(
    choice(
      'ALLOW_UNATTESTED',
      ['0', '1'],
      '1: also accepts simulated enclaves, which have no evidence; for tests only',
    ),
  ),
  debug: createDebugSetting(
    'DEBUG',
    'Any value except 0 and false: logs the model, sizes, status and duration of each request, but no content',
  ),
} as const;

type SettingValues<S> = { readonly [name in keyof S]: S[name] extends Setting<infer T> ? T : never };

export interface ProxySettings extends SettingValues<typeof PROXY_SETTINGS> {
  readonly logLevel: 'info' | 'debug';
}

/** @throws SettingError */
export function readProxySettings(env: Environment): ProxySettings {
  const values = Object.fromEntries(
    Object.entries(PROXY_SETTINGS).map(([name, setting]) => [name, readSetting<unknown>(setting, env)]),
  ) as unknown as SettingValues<typeof PROXY_SETTINGS>;
  return { ...values, logLevel: values.debug ? 'debug' : 'info' };
}

/**
 * Rejects a URL that has a user, a query or a fragment, or ends in `/v1`. Also rejects an unencrypted connection over a
 * network: it would reveal the API key, and which models are used when.
 */
function toGatewaySetting(setting: Setting<string>): Setting<string> {
  return {
    ...setting,
    read(env) {
      const value = setting.read(env);
      const { protocol, hostname, pathname, username, password, search, hash } = new URL(value);
      if (username || password || search || hash) {
        throw new SettingError(`${setting.variable} must be a URL without a user, a query or a fragment.`);
      }
      if (pathname.endsWith('/v1')) {
        throw new SettingError(`${setting.variable} must be the URL of the gateway without /v1, which the proxy adds.`);
      }
      if (protocol === 'http:' && !LOOPBACK.test(hostname)) {
        throw new SettingError(`${setting.variable} must start with https:// for a gateway on another host.`);
      }
      return value;
    },
  };
}

function withPattern(pattern: RegExp, requirement: string, setting: Setting<string>): Setting<string> {
  return {
    ...setting,
    read(env) {
      const value = setting.read(env);
      if (pattern.test(value)) return value;
      throw new SettingError(`${setting.variable} must be ${requirement}, not "${value}".`);
    },
  };
}

function toListSetting(setting: Setting<string>): Setting<readonly string[]> {
  return { ...setting, read: (env) => setting.read(env).split(/\s*,\s*/) };
}

function toBooleanSetting(setting: Setting<string>): Setting<boolean> {
  return { ...setting, read: (env) => setting.read(env) === '1' };
}

/** Many programs read DEBUG, each with its own values. So any value except 0, false and an empty one enables it. */
function createDebugSetting(variable: string, meaning: string): Setting<boolean> {
  return {
    variable,
    meaning,
    defaultValue: '',
    read: (env) => !['', '0', 'false'].includes(env[variable]?.trim() ?? ''),
  };
}
