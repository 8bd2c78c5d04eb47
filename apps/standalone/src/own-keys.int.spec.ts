/** A team with its own provider keys: the commands of the README, and an operator's accounts. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs, promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import {
  copyUndatedCatalogue,
  createMigratedDatabase,
  createTestEndpoint,
  createTestModel,
  openStandalone,
  ProviderRecorder,
  type RunningStandalone,
  runLedger,
  type TestDatabase,
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
 * Creates commands that take the place of `npm` and `curl`, so that the README's commands run unchanged in a shell. They
 * send their arguments and environment to a server of this process, which runs them.
 */
async function createCommands(server: string): Promise<string> {
  const folder = path.join(directory, 'bin');
  await mkdir(folder);
  const script = `
    const [name, ...args] = process.argv.slice(2);
    const body = JSON.stringify({ name, args, env: process.env });
    const response = await fetch(${JSON.stringify(server)}, { method: 'POST', body });
    process[response.ok ? 'stdout' : 'stderr'].write(await response.text());
    if (!response.ok) process.exitCode = 1;`;
  await writeFile(path.join(folder, 'command.mjs'), script);
  for (const name of ['npm', 'curl']) {
    const text = `#!/bin/sh\nexec "${process.execPath}" "${path.join(folder, 'command.mjs')}" ${name} "$@"\n`;
    await writeFile(path.join(folder, name), text, { mode: 0o755 });
  }
  return folder;
}

interface ReceivedCommand {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Runs the command line of curl with the API of the test in place of the one in the README. */
async function runCurl(args: readonly string[], api: string): Promise<string> {
  const {
    positionals: [url = ''],
    values,
  } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      silent: { type: 'boolean', short: 's' },
      header: { type: 'string', short: 'H', multiple: true, default: [] },
      data: { type: 'string', short: 'd', default: '' },
    },
  });
  const headers = values.header.map((header) => header.split(': ') as [string, string]);
  const response = await fetch(url.replace('http://127.0.0.1:3000', api), {
    method: 'POST',
    headers,
    body: values.data,
  });
  return response.text();
}

test('the commands of the README lead from the key of a provider to a response that a capped key pays for', async () => {
  const commands = await readCommands();
  expect(commands).toHaveLength(5);
  const readmeCatalogueDir = path.join(directory, 'readme-catalogue');
  await copyUndatedCatalogue(readmeCatalogueDir);
  let program: RunningStandalone | undefined;
  const run = async ({ name, args, env }: ReceivedCommand): Promise<string> => {
    const command = [name, ...args].join(' ');
    if (command === 'npm ci') return '';
    if (name === 'curl') return runCurl(args, program?.api ?? '');
    if (command === 'npm start') {
      program = await openStandalone(env);
      return '';
    }
    expect(command).toMatch(/^npm run -s ledger -- /);
    return (await runLedger(env, ...args.slice(4))).map((line) => `${line}\n`).join('');
  };
  const server = createServer(async (request, response) => {
    const output = await run(JSON.parse(await text(request))).catch((error) => {
      response.statusCode = 500;
      return String(error);
    });
    response.end(output);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const database = await createMigratedDatabase();
  const settings = {
    PATH: `${await createCommands(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)}:/usr/bin:/bin`,
    DATABASE_URL: database.url,
    DATA_DIR: path.join(directory, 'readme'),
    OPENAI_BASE_URL: `${provider.address}/v1`,
    CATALOGUE_DIR: readmeCatalogueDir,
  };
  try {
    const script = commands.join('\n');
    const { stdout } = await promisify(execFile)('/bin/sh', ['-e', '-c', script], { env: settings });
    const completion = JSON.parse(stdout.trimEnd().split('\n').at(-1) as string);
    expect(completion).toMatchObject({
      model: 'openai/gpt-5.4-mini',
      choices: [{ message: { content: 'Hi' } }],
      usage: { prompt_tokens: 5, completion_tokens: 1 },
    });
    const chat = provider.received.find(([url]) => url === '/v1/chat/completions');
    expect(chat?.[1].authorization).toBe('Bearer sk-your-key');
    const keys = (await runLedger(settings, 'keys', '--account', 'team-a')).at(-1);
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
    server.close();
    server.closeAllConnections();
    await program?.close();
    await database.drop();
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
  let database: TestDatabase;
  let program: RunningStandalone;
  beforeAll(async () => {
    const catalogueDir = path.join(directory, 'catalogue');
    await copyUndatedCatalogue(catalogueDir, MODELS);
    database = await createMigratedDatabase();
    settings = {
      DATABASE_URL: database.url,
      DATA_DIR: path.join(directory, 'team'),
      CATALOGUE_DIR: catalogueDir,
      OPENAI_BASE_URL: `${provider.address}/v1`,
      ANTHROPIC_BASE_URL: provider.address,
      ANTHROPIC_API_KEY: 'sk-ant',
    };
    program = await openStandalone(settings);
  });
  afterAll(async () => {
    await program.close();
    await database.drop();
  });

  const ledger = (...args: string[]) => runLedger(settings, ...args);
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
    await program.close();
    program = await openStandalone(settings);
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
