/** A team with its own provider keys: the commands of the README, and an operator's accounts on the built program. */
import { execFile, spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import {
  type BuiltProgram,
  copyUndatedCatalogue,
  createTestEndpoint,
  createTestModel,
  LEDGER_MAIN,
  ProviderRecorder,
  runBuiltLedger,
  STANDALONE_MAIN,
  startBuiltProgram,
  waitUntilReady,
} from '#testing';

const README = path.resolve(import.meta.dirname, '../../../README.md');

let directory: string;
let provider: ProviderRecorder;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-own-keys-'));
  provider = await ProviderRecorder.open();
});
beforeEach(() => void provider.received.splice(0));
afterAll(async () => {
  provider.close();
  await rm(directory, { recursive: true });
});

/** The commands of the section of the README about own keys. */
async function readCommands(): Promise<readonly string[]> {
  const [, section = ''] = (await readFile(README, 'utf8')).split('## With your own keys\n');
  const [text = ''] = section.split('\n## ');
  return text.split('\n').flatMap((line) => (line.startsWith('    ') ? [line.trim()] : []));
}

/**
 * Creates commands that take the place of `npm` and `curl`, so that the README's commands run unchanged: npm runs the
 * built program, and curl sends requests to the port of the test.
 */
async function createCommands(): Promise<string> {
  const folder = path.join(directory, 'bin');
  await mkdir(folder);
  const node = process.execPath;
  const npm = `case "$1 $2 $3" in
    "ci  ") exit 0 ;;
    "start  ") exec "${node}" "${STANDALONE_MAIN}" ;;
    "run -s ledger") shift 4; exec "${node}" "${LEDGER_MAIN}" "$@" ;;
    *) echo "unexpected: npm $*" >&2; exit 1 ;;
  esac`;
  const script = `
    import { parseArgs } from 'node:util';
    const options = { silent: { type: 'boolean', short: 's' }, header: { type: 'string', short: 'H', multiple: true }, data: { type: 'string', short: 'd' } };
    const { positionals: [url], values } = parseArgs({ options, allowPositionals: true });
    const headers = values.header.map((header) => header.split(': '));
    const target = url.replace('http://127.0.0.1:3000', process.env.TEST_API);
    const response = await fetch(target, { method: 'POST', headers, body: values.data });
    console.log(await response.text());`;
  await writeFile(path.join(folder, 'curl.mjs'), script);
  for (const [name, body] of [
    ['npm', npm],
    ['curl', `exec "${node}" "${path.join(folder, 'curl.mjs')}" "$@"`],
  ] as const) {
    await writeFile(path.join(folder, name), `#!/bin/sh\n${body}\n`);
    await chmod(path.join(folder, name), 0o755);
  }
  return folder;
}

test('the commands of the README lead from the key of a provider to a response that a capped key pays for', async () => {
  const [start = '', ...commands] = await readCommands();
  expect(commands).toHaveLength(4);
  const readmeCatalogueDir = path.join(directory, 'readme-catalogue');
  await copyUndatedCatalogue(readmeCatalogueDir);
  const settings = {
    PATH: `${await createCommands()}:/usr/bin:/bin`,
    DATA_DIR: path.join(directory, 'readme'),
    PORT: '0',
    DRAIN_DELAY_MS: '0',
    OPENAI_BASE_URL: `${provider.address}/v1`,
    CATALOGUE_DIR: readmeCatalogueDir,
  };
  const shell = spawn('/bin/sh', ['-c', start], {
    env: settings,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const program = await waitUntilReady(shell);
  try {
    const env = { ...settings, TEST_API: program.api };
    const { stdout } = await promisify(execFile)('/bin/sh', ['-e', '-c', commands.join('\n')], { env });
    const completion = JSON.parse(stdout.trimEnd().split('\n').at(-1) as string);
    expect(completion).toMatchObject({
      model: 'openai/gpt-5.4-mini',
      choices: [{ message: { content: 'Hi' } }],
      usage: { prompt_tokens: 5, completion_tokens: 1 },
    });
    const chat = provider.received.find(([url]) => url === '/v1/chat/completions');
    expect(chat?.[1].authorization).toBe('Bearer sk-your-key');
    const keys = (await runBuiltLedger(settings, 'keys', '--account', 'team-a')).at(-1);
    const cost = completion.usage.cost.toFixed(12).replace(/0+$/, '');
    expect(keys?.trim().split(/ {2,}/)).toEqual([
      'team-a',
      'ci',
      expect.stringMatching(/^[0-9a-f]{24}$/),
      cost,
      '50',
      'monthly',
      cost,
      'active',
      'all models',
    ]);
  } finally {
    process.kill(-(shell.pid as number), 'SIGTERM');
    await program.stop();
  }
});

describe('a program with a key of Anthropic and a server without a key', () => {
  /** A chat costs 0.004 USD, so that a key with a limit of 0.01 USD pays for two. */
  const FLAT = { usdPerMillionTokens: { input: '0', output: '0' }, usdPerRequest: '0.004', margin: '1' };
  const MODELS = [
    createTestModel('test/openai', [createTestEndpoint('OpenAI', 'openai', FLAT)]),
    createTestModel('test/anthropic', [createTestEndpoint('Anthropic', 'anthropic', FLAT)]),
  ];
  let settings: Record<string, string>;
  let program: BuiltProgram;
  beforeAll(async () => {
    const catalogueDir = path.join(directory, 'catalogue');
    await copyUndatedCatalogue(catalogueDir, MODELS);
    settings = {
      DATA_DIR: path.join(directory, 'team'),
      CATALOGUE_DIR: catalogueDir,
      PATH: process.env.PATH as string,
      OPENAI_BASE_URL: `${provider.address}/v1`,
      ANTHROPIC_BASE_URL: provider.address,
      ANTHROPIC_API_KEY: 'sk-ant',
    };
    program = await startBuiltProgram(settings);
  });
  afterAll(() => program.stop());

  const ledger = (...args: readonly string[]) => runBuiltLedger(settings, ...args);
  const createKey = async (name: string, ...options: readonly string[]) =>
    (await ledger('keys', 'create', '--account', 'team-b', '--name', name, ...options))[0] as string;

  /** Streams a chat, and returns its text and its cost; the status of a rejected one. */
  async function stream(apiKey: string, model: string): Promise<unknown> {
    const client = new OpenAI({ apiKey, baseURL: `${program.api}/v1`, maxRetries: 0 });
    try {
      const chunks = await client.chat.completions.create({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'Hi' }],
      });
      let [content, cost] = ['', 0];
      for await (const { choices, usage } of chunks) {
        content += choices[0]?.delta.content ?? '';
        cost = (usage as { cost?: number } | null | undefined)?.cost ?? cost;
      }
      return { content, cost };
    } catch (error) {
      return (error as InstanceType<typeof OpenAI.APIError>).status;
    }
  }

  test('serves both until the limit of a key, also after a restart, and the ledger explains every amount', async () => {
    await ledger('accounts', 'create', '--name', 'team-b');
    await ledger('credit', 'team-b', '--usd', '10', '--reason', 'Budget', '--id', 'b-1');
    const capped = await createKey('ci', '--limit', '0.01');
    const served = { content: 'Hi', cost: 0.004 };
    expect(await stream(capped, 'test/openai')).toEqual(served);
    await program.stop();
    program = await startBuiltProgram(settings);
    expect(await stream(capped, 'test/anthropic')).toEqual(served);
    expect(await stream(capped, 'test/openai')).toBe(402);
    const restricted = await createKey('night', '--models', 'test/anthropic');
    expect(await stream(restricted, 'test/openai')).toBe(403);
    expect(await stream(restricted, 'test/anthropic')).toEqual(served);
    await ledger('keys', 'block', 'night');
    expect(await stream(restricted, 'test/anthropic')).toBe(403);
    const chats = provider.received.filter(([url]) => /completions|messages/.test(url)).map(([, headers]) => headers);
    expect(chats.map((headers) => headers.authorization ?? headers['x-api-key'])).toEqual([
      undefined,
      'sk-ant',
      'sk-ant',
    ]);
    expect((await ledger('accounts')).at(-1)?.trim().split(/ {2,}/)).toEqual(['team-b', '9.988', '0', '0.012', '2']);
    expect(await ledger('wallets')).toContainEqual(expect.stringMatching(/^operator +10 +0 +10$/));
    expect((await ledger('verify')).at(-1)).toBe('drift 0');
  });
});
