import { expect, test } from '@jest/globals';
import { SETTINGS } from './settings.ts';
import { listUnknownSettings } from './unknown-settings.ts';

const provider = (env: string) => ({ slug: env, env, baseUrl: '', sandboxPath: '' });
const PROVIDERS = [provider('OPENAI'), provider('EXA'), provider('GOOGLE')];

const list = (...variables: readonly string[]) =>
  listUnknownSettings(Object.fromEntries(variables.map((variable) => [variable, 'x'])), PROVIDERS);

test.each([
  ['OPENAI_APIKEY', 'OPENAI_API_KEY'],
  ['OPENAI_KEY', 'OPENAI_API_KEY'],
  ['OPENAI_API_KEY_FIEL', 'OPENAI_API_KEY_FILE'],
  ['openai_api_key', 'OPENAI_API_KEY'],
  ['EXA_BASEURL', 'EXA_BASE_URL'],
  ['SHUTDOWN_TIMEOUT', 'SHUTDOWN_TIMEOUT_MS'],
  ['UPSTREAM_TIMEOUT_MS', 'UPSTREAM_IDLE_TIMEOUT_MS'],
  ['DATABSE_URL', 'DATABASE_URL'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['MASTERKEY', 'MASTER_KEY'],
  ['LND_URL', 'LND_REST_URL'],
  ['STRIPE_KEY', 'STRIPE_SECRET_KEY'],
  ['COUNTINGHOUSE_PORT', 'PORT'],
  ['COUNTINGHOUSE_LOGLEVEL', 'LOG_LEVEL'],
])('%s is reported with the setting that it resembles, %s', (variable, setting) => {
  expect(list(variable)).toEqual([`${variable} is not a setting and has no effect; did you mean ${setting}?`]);
});

test.each(['COUNTINGHOUSE_COLOUR', 'TOPUP_CURRENCY', 'UPSTREAM_PROXY', 'BTCPAY_NETWORK'])(
  '%s is reported, because its prefix is one of this program',
  (variable) => {
    expect(list(variable)).toEqual([`${variable} is not a setting and has no effect.`]);
  },
);

test('no setting is reported, nor the file of its value', () => {
  const variables = Object.values(SETTINGS).map(({ variable }) => variable);
  expect(list(...variables, 'OPENAI_API_KEY', 'EXA_BASE_URL', 'MASTER_KEY_FILE', 'OPENAI_API_KEY_FILE')).toEqual([]);
});

test('no variable of another program is reported', () => {
  const names = [
    'PATH',
    'HOME',
    'HOSTNAME',
    'USER',
    'SHELL',
    'LANG',
    'TERM',
    'PWD',
    'SHLVL',
    'TZ',
    'LOGNAME',
    'MAIL',
    'POST',
    'NODE_ENV',
    'NODE_OPTIONS',
    'NODE_EXTRA_CA_CERTS',
    'npm_config_loglevel',
    'npm_package_name',
    'INIT_CWD',
    'PGHOST',
    'PGPORT',
    'PGUSER',
    'PGDATABASE',
    'PGPASSWORD',
    'PGSSLMODE',
    'POSTGRES_PASSWORD',
    'POSTGRES_USER',
    'AWS_REGION',
    'AWS_ACCESS_KEY_ID',
    'AWS_SECRET_ACCESS_KEY',
    'AWS_ENDPOINT_URL_S3',
    'GOOGLE_CLOUD_PROJECT',
    'GOOGLE_APPLICATION_CREDENTIALS',
    'XAI_API_KEY',
    'MISTRAL_API_KEY',
    'HF_TOKEN',
    'OPENAI_ORG_ID',
    'XDG_DATA_DIRS',
    'KUBERNETES_SERVICE_HOST',
    'KUBERNETES_PORT',
    'STORE_ADMIN_PASSWORD',
    'PPQ_API_KEY',
    'PRIVATE_MODEL',
    'JOURNAL_STREAM',
    'INVOCATION_ID',
    'NOTIFY_SOCKET',
    'http_proxy',
    'HTTPS_PROXY',
    'NO_PROXY',
    'DEBUG',
  ];
  expect(list(...names)).toEqual([]);
});

test('no variable that Kubernetes creates for a service is reported, whatever the name of the service', () => {
  const env = {
    COUNTINGHOUSE_PORT: 'tcp://10.0.0.1:3000',
    COUNTINGHOUSE_SERVICE_HOST: '10.0.0.1',
    COUNTINGHOUSE_SERVICE_PORT: '3000',
    COUNTINGHOUSE_SERVICE_PORT_HTTP: '3000',
    COUNTINGHOUSE_PORT_3000_TCP: 'tcp://10.0.0.1:3000',
    COUNTINGHOUSE_PORT_3000_TCP_ADDR: '10.0.0.1',
    BTCPAY_PORT_80_TCP_PROTO: 'tcp',
  };
  expect(listUnknownSettings(env, PROVIDERS)).toEqual([]);
});

test('an empty variable is not reported', () => {
  expect(listUnknownSettings({ OPENAI_APIKEY: ' ' }, PROVIDERS)).toEqual([]);
});
