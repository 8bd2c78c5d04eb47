import { mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readProviders } from '#catalogue';
import { createSelfSignedCertificate } from '#testing';
import type { Log } from './log.ts';
import { SecretWatch } from './secret-watch.ts';
import type { Settings } from './settings.ts';
import { SettingsReader } from './settings-reader.ts';

const reader = new SettingsReader(readProviders);
const lines = { info: [] as unknown[], error: [] as unknown[] };
const log = {
  info: (...line: unknown[]) => lines.info.push(line),
  error: (...line: unknown[]) => lines.error.push(line),
} as unknown as Log;
let directory: string;
let watch: SecretWatch | undefined;

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-secrets-'));
  Object.assign(lines, { info: [], error: [] });
});

afterEach(async () => {
  await watch?.close();
  await rm(directory, { recursive: true });
});

const toPath = (name: string) => path.join(directory, name);

async function writeSecrets(secrets: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, content] of Object.entries(secrets)) await writeFile(toPath(name), `${content}\n`);
}

/** Reads settings whose secrets are in files, and watches these files. */
async function watchSecrets(secrets: Readonly<Record<string, string>>): Promise<Settings> {
  await writeSecrets(secrets);
  const env = Object.fromEntries(
    Object.keys(secrets).map((name) => [name.endsWith('_CERT') ? name : `${name}_FILE`, toPath(name)]),
  );
  const settings = reader.read(env);
  watch = new SecretWatch({ settings, env, reader, log });
  return settings;
}

test('changed files replace the secrets in the settings, and one log line names them without values', async () => {
  const certificate = (await createSelfSignedCertificate()).cert.trim();
  const settings = await watchSecrets({ LND_MACAROON: '01', OPENAI_API_KEY: 'sk-1', LND_TLS_CERT: certificate });
  const connection = settings.providers.get('openai');
  const renewed = (await createSelfSignedCertificate()).cert.trim();

  await writeSecrets({ LND_MACAROON: '02', OPENAI_API_KEY: 'sk-2', LND_TLS_CERT: renewed });
  await watch?.poll();

  expect(settings).toMatchObject({ lndMacaroon: '02', lndCertificates: [renewed] });
  expect(connection?.credential).toBe('sk-2');
  expect(lines.info).toEqual([
    [{ settings: ['LND_MACAROON', 'LND_TLS_CERT', 'OPENAI_API_KEY'] }, 'changed secrets are in use'],
  ]);
});

test('listeners are called after a change has come into use, and only then', async () => {
  const settings = await watchSecrets({ LND_MACAROON: '01' });
  const seen: unknown[] = [];
  watch?.onApplied(() => seen.push(settings.lndMacaroon));

  await watch?.poll();
  expect(seen).toEqual([]);
  await writeSecrets({ LND_MACAROON: '02' });
  await watch?.poll();

  expect(seen).toEqual(['02']);
});

test('the variable of a setting is that of its file if it has one', async () => {
  await watchSecrets({ LND_MACAROON: '01' });
  expect(watch?.getVariable('LND_MACAROON')).toBe('LND_MACAROON_FILE');
  expect(watch?.getVariable('CLN_RUNE')).toBe('CLN_RUNE');
});

test('files that have not changed are not reported', async () => {
  await watchSecrets({ LND_MACAROON: '01' });

  await watch?.poll();

  expect([lines.info, lines.error]).toEqual([[], []]);
});

test('a link that is replaced, as Kubernetes does, is followed', async () => {
  await writeSecrets({ old: '01', new: '02' });
  await symlink(toPath('old'), toPath('LND_MACAROON'));
  const env = { LND_MACAROON_FILE: toPath('LND_MACAROON') };
  const settings = reader.read(env);
  watch = new SecretWatch({ settings, env, reader, log });

  await symlink(toPath('new'), toPath('next'));
  await rename(toPath('next'), toPath('LND_MACAROON'));
  await watch.poll();

  expect(settings.lndMacaroon).toBe('02');
});

test('an invalid secret is reported once, without its value, and the previous one stays in use until it is valid', async () => {
  const settings = await watchSecrets({ LND_MACAROON: '01', COINGECKO_API_KEY: 'CG-1' });

  await writeSecrets({ LND_MACAROON: 'hush', COINGECKO_API_KEY: 'CG-2' });
  await watch?.poll();
  await watch?.poll();
  const rejected = { ...settings };
  await writeSecrets({ LND_MACAROON: '02' });
  await watch?.poll();

  expect(rejected).toMatchObject({ lndMacaroon: '01', coinGeckoKey: 'CG-2' });
  expect(lines.error).toEqual([
    [
      { setting: 'LND_MACAROON', reason: 'LND_MACAROON must be hexadecimal digits.' },
      'a changed secret is rejected; the previous one stays in use',
    ],
  ]);
  expect(settings.lndMacaroon).toBe('02');
});

test('a file that is missing is reported once, and its previous value stays in use', async () => {
  const settings = await watchSecrets({ LND_MACAROON: '01' });

  await rm(toPath('LND_MACAROON'));
  await watch?.poll();
  await watch?.poll();

  expect(settings.lndMacaroon).toBe('01');
  expect(lines.error).toHaveLength(1);
});

test('secrets that belong together are replaced together', async () => {
  const settings = await watchSecrets({ S3_ACCESS_KEY_ID: 'id1', S3_SECRET_ACCESS_KEY: 'key1' });
  const seen: unknown[] = [];
  watch?.onChange(({ s3AccessKeyId, s3SecretAccessKey }) => void seen.push([s3AccessKeyId, s3SecretAccessKey]));

  await writeSecrets({ S3_ACCESS_KEY_ID: 'id2', S3_SECRET_ACCESS_KEY: 'key2' });
  await watch?.poll();

  expect(seen).toEqual([['id2', 'key2']]);
  expect(settings).toMatchObject({ s3AccessKeyId: 'id2', s3SecretAccessKey: 'key2' });
});

test('a listener can reject a secret, and is called again until it accepts it', async () => {
  const settings = await watchSecrets({ MASTER_KEY: '01'.repeat(32) });
  let isReady = false;
  watch?.onChange(() => {
    if (!isReady) throw new Error('the database is not available');
  });

  await writeSecrets({ MASTER_KEY: '02'.repeat(32) });
  await watch?.poll();
  const rejected = settings.masterKeys;
  isReady = true;
  await watch?.poll();

  expect([rejected, settings.masterKeys]).toEqual([['01'.repeat(32)], ['02'.repeat(32)]]);
});

test('SIGHUP reads the files at once, and ends the process as before if no secret is in a file', async () => {
  const before = process.listenerCount('SIGHUP');
  const env = {};
  await new SecretWatch({ settings: reader.read(env), env, reader, log }).close();
  expect(process.listenerCount('SIGHUP')).toBe(before);
  const settings = await watchSecrets({ LND_MACAROON: '01' });

  await writeSecrets({ LND_MACAROON: '02' });
  process.emit('SIGHUP');
  await watch?.poll();

  expect(settings.lndMacaroon).toBe('02');
});
