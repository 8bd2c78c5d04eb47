/** The settings of the proxy. They come from the environment; one that is wrong stops the start with a sentence that names it. */
import {
  choice,
  type Environment,
  integer,
  optional,
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
    'Pays: an API key of the gateway; required',
  ),
  port: integer('PORT', 8787, [0, 65_535], 'Port of the proxy, which listens on 127.0.0.1 alone'),
  gateway: toGatewaySetting(
    url(
      'PPQ_API_BASE',
      ['http:', 'https:'],
      'Address of the gateway, without /v1; http: for this machine alone',
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
        'Private model for requests that name none, or one that is not private, such as claude-…; unset: they are refused',
      ),
    ),
  ),
  repositories: toListSetting(
    withPattern(
      REPOSITORIES,
      'GitHub repositories, owner/name, with commas between them',
      text(
        'ENCLAVE_REPOSITORY',
        'tinfoilsh/confidential-model-router',
        'GitHub repositories whose signed releases enclaves must run; several with commas between them',
      ),
    ),
  ),
  allowUnattested: toBooleanSetting(
    choice(
      'ALLOW_UNATTESTED',
      ['0', '1'],
      '1: accepts simulated enclaves too, which prove nothing and are for trying it out',
    ),
  ),
  debug: createDebugSetting('DEBUG', 'Logs each request: its model, sizes, status and times, never what is said'),
} as const;

type SettingValues<S> = { readonly [name in keyof S]: S[name] extends Setting<infer T> ? T : never };

export interface ProxySettings extends SettingValues<typeof PROXY_SETTINGS> {
  readonly logLevel: 'info' | 'debug';
}

/** @throws SettingError */
export function readProxySettings(env: Environment): ProxySettings {
  const values = Object.fromEntries(
    Object.entries(PROXY_SETTINGS).map(([name, setting]) => [name, setting.read(env)]),
  ) as unknown as SettingValues<typeof PROXY_SETTINGS>;
  return { ...values, logLevel: values.debug ? 'debug' : 'info' };
}

/** The key goes with every request, and who can read along learns which model is used when: never in the clear over a network. */
function toGatewaySetting(setting: Setting<string>): Setting<string> {
  return {
    ...setting,
    read(env) {
      const value = setting.read(env);
      const { protocol, hostname, pathname, username, password, search, hash } = new URL(value);
      if (username || password || search || hash) {
        throw new SettingError(`${setting.variable} must be an address without a user, a query or a fragment.`);
      }
      if (pathname.endsWith('/v1')) {
        throw new SettingError(
          `${setting.variable} must be the address of the gateway without /v1, which the proxy adds.`,
        );
      }
      if (protocol === 'http:' && !LOOPBACK.test(hostname)) {
        throw new SettingError(`${setting.variable} must start with https:// for a gateway on another machine.`);
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

/** Many programs read it, each for words of its own: any of them will do. */
function createDebugSetting(variable: string, meaning: string): Setting<boolean> {
  return {
    variable,
    meaning,
    defaultValue: '',
    read: (env) => !['', '0', 'false'].includes(env[variable]?.trim() ?? ''),
  };
}
