/** The settings of the proxy, from the environment. An invalid one prevents the start; the error names it. */
import { z } from 'zod';
import {
  type Environment,
  flag,
  integer,
  optional,
  readSetting,
  type Setting,
  type SettingValues,
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
  gateway: createGatewaySetting(),
  defaultModel: optional({
    ...text(
      'PRIVATE_MODEL',
      '',
      'Private model for model names that are not private, such as claude-…; unset: such names are rejected',
    ),
    schema: z.string().regex(MODEL_ID_PATTERN),
    requirement: 'the id of a model',
  }),
  repositories: {
    variable: 'ENCLAVE_REPOSITORY',
    meaning: 'GitHub repositories whose signed releases enclaves must run, separated by commas',
    defaultValue: 'tinfoilsh/confidential-model-router',
    schema: z
      .string()
      .regex(REPOSITORIES)
      .transform((value): readonly string[] => value.split(/\s*,\s*/)),
    requirement: 'GitHub repositories as owner/name, separated by commas',
  },
  allowUnattested: flag(
    'ALLOW_UNATTESTED',
    '1: also accepts simulated enclaves, which have no evidence; for tests only',
    ['0', '1'],
  ),
  debug: {
    variable: 'DEBUG',
    meaning: 'Any value except 0 and false: logs the model, sizes, status and duration of each request, but no content',
    defaultValue: '',
    // Many programs read DEBUG, each with its own values.
    schema: z
      .string()
      .transform((value) => value !== '0' && value !== 'false')
      .default(false),
  },
} as const;

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
 * Rejects a URL that ends in `/v1`. Also rejects an unencrypted connection over a network: it would reveal the API key,
 * and which models are used when.
 */
function createGatewaySetting(): Setting<string> {
  const setting = url(
    'PPQ_API_BASE',
    'URL of the gateway, without /v1; http: only for a gateway on this host',
    'http://127.0.0.1:3000',
  );
  const schema = setting.schema
    .refine(
      (value) => !new URL(value).pathname.endsWith('/v1'),
      'must be the URL of the gateway without /v1, which the proxy adds',
    )
    .refine((value) => {
      const { protocol, hostname } = new URL(value);
      return protocol === 'https:' || LOOPBACK.test(hostname);
    }, 'must start with https:// for a gateway on another host');
  return { ...setting, schema };
}
