import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { getShippedCatalogueDir, LISTING_PROVIDERS } from '#catalogue';
import { createSmallCatalogue, createTestEndpoint, createTestModel } from '#testing';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { runCatalogueCommand } from './command-line.ts';

const DAY = '2026-11-29';

interface Output {
  readonly code: number;
  readonly out: readonly string[];
  readonly err: readonly string[];
}

/** Runs the live check with these settings alone. */
async function checkLive(settings: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<Output> {
  const toLines = (text: string) => text.split('\n').slice(0, -1);
  const result = await runCatalogueCommand(['check', '--live', '--day', DAY, ...args], settings);
  return { code: result.exitCode, out: toLines(result.stdout), err: toLines(result.stderr) };
}

const withoutWarnings = (lines: readonly string[]) => lines.filter((line) => !line.startsWith('warning: '));

describe('the live check over the sandbox', () => {
  let sandbox: Awaited<ReturnType<typeof startSandbox>>;
  beforeAll(async () => {
    sandbox = await startSandbox({ port: 0 });
  });
  afterAll(() => sandbox.close());

  test('finds that all providers serve the shipped catalogue at its prices and until its ends', async () => {
    const { code, out, err } = await checkLive({ SANDBOX_URL: sandbox.url });
    expect([code, withoutWarnings(err)]).toEqual([0, []]);
    expect(err.filter((line) => / (gone|ended|retiring|repriced): /.test(line))).toEqual([]);
    const lists = out.slice(1).filter((line) => !line.includes(': new: '));
    expect(lists.toSorted()).toEqual(
      LISTING_PROVIDERS.toSorted().map((slug) => expect.stringMatching(`^${slug}: \\d+ models of the sandbox$`)),
    );
  });

  test('finds what a catalogue states otherwise', async () => {
    const own = await mkdtemp(path.join(tmpdir(), 'countinghouse-live-'));
    await cp(getShippedCatalogueDir(), own, { recursive: true });
    const file = path.join(own, 'models.json');
    // biome-ignore lint/suspicious/noExplicitAny: a data file
    const models: any[] = JSON.parse(await readFile(file, 'utf8'));
    const edit = (id: string, fields: object) =>
      Object.assign(
        models.find((model) => model.id === id),
        fields,
      );
    const editEndpoint = (id: string, fields: object) => Object.assign(edit(id, {}).endpoints[0], fields);
    editEndpoint('anthropic/claude-haiku-4.5', { model: 'claude-haiku-4' });
    edit('openai/gpt-5-codex', { retires: undefined, successor: undefined });
    edit('openai/o3', { retires: '2027-06-01' });
    editEndpoint('moonshotai/kimi-k3', { usdPerMillionTokens: { input: '3', cacheRead: '0.3', output: '14' } });
    await writeFile(file, JSON.stringify(models));
    try {
      const { code, out, err } = await checkLive({ SANDBOX_URL: sandbox.url }, own);
      expect(out).toContain('anthropic: new: "claude-haiku-4-5-20251001"');
      expect(err).toContain(
        'warning: openai: retiring: "o3" of model "openai/o3" on 2026-12-11; the catalogue has 2027-06-01',
      );
      expect(err).toContain(
        'warning: openrouter: repriced: "moonshotai/kimi-k3" of model "moonshotai/kimi-k3": 1,000,000 output cost 15 USD; the catalogue has 14 USD',
      );
      expect([code, withoutWarnings(err)]).toEqual([
        1,
        [
          'openai: ended: "gpt-5-codex" of model "openai/gpt-5-codex" on 2026-07-23; the catalogue has no day',
          'anthropic: gone: "claude-haiku-4" of model "anthropic/claude-haiku-4.5"',
        ],
      ]);
    } finally {
      await rm(own, { recursive: true });
    }
  });
});

describe('the live check of a configured provider', () => {
  let server: Server;
  let small: string;
  beforeAll(async () => {
    small = await mkdtemp(path.join(tmpdir(), 'countinghouse-live-'));
    await createSmallCatalogue(small, [createTestModel('test/model', [createTestEndpoint('Groq', 'groq')])]);
  });
  afterAll(() => rm(small, { recursive: true }));
  afterEach(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });

  /** Checks with a single provider, whose API is this one. */
  async function checkWith(provider: 'ANTHROPIC' | 'GROQ', handle: RequestListener): Promise<Output> {
    server = createServer(handle).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return checkLive({ [`${provider}_API_KEY`]: 'key-of-the-operator', [`${provider}_BASE_URL`]: url }, small);
  }

  test('sends its key, follows pages, and skips providers without a key', async () => {
    const received: unknown[] = [];
    const { out } = await checkWith('ANTHROPIC', ({ url, headers }, response) => {
      received.push([url, headers['x-api-key']]);
      const isLast = received.length === 2;
      const data = [{ id: isLast ? 'claude-second' : 'claude-first', lifecycle: 'active' }];
      response.end(JSON.stringify({ data, has_more: !isLast, last_id: data[0]?.id }));
    });
    expect(received).toEqual([
      ['/v1/models?limit=1000', 'key-of-the-operator'],
      ['/v1/models?limit=1000&after_id=claude-first', 'key-of-the-operator'],
    ]);
    expect(out.slice(1)).toEqual([
      'openai: skipped; OPENAI_API_KEY is not set',
      'anthropic: 2 models',
      'anthropic: new: "claude-first"',
      'anthropic: new: "claude-second"',
      'openrouter: skipped; OPENROUTER_API_KEY is not set',
      'groq: skipped; GROQ_API_KEY is not set',
      'deepinfra: skipped; DEEPINFRA_API_KEY is not set',
      'google: skipped; GOOGLE_API_KEY is not set',
    ]);
  });

  const page = (fields: object) => JSON.stringify({ data: [{ id: 'a-model' }], ...fields });
  test.each<[string, RequestListener, string]>([
    [
      'that rejects the key',
      (_, response) => response.writeHead(401).end('{"error":{"message":"key-of-the-operator"}}'),
      'it rejects the key',
    ],
    [
      'that fails',
      (_, response) => response.writeHead(500).end('key-of-the-operator'),
      'The provider responded with status 500',
    ],
    ['that disconnects', ({ socket }) => socket.destroy(), 'The provider cannot be reached'],
    [
      'whose response is not JSON',
      (_, response) => response.end('<html>'),
      'The provider sent a response that is not JSON',
    ],
    [
      'whose response is no list',
      (_, response) => response.end('{}'),
      'it must be the list of models of groq, with 1 to 10000 rows in "data"',
    ],
    [
      'whose list has no end',
      (_, response) => response.end(page({ has_more: true, last_id: 'a-model' })),
      'Its list of models has more than 10 pages',
    ],
    [
      'whose list is too long',
      (_, response) => response.end(page({ more: 'x'.repeat(33 * 1024 * 1024) })),
      'The response of the provider is too long',
    ],
  ])('fails for one %s, and never prints the key', async (_, handle, reason) => {
    const { code, out, err } = await checkWith('GROQ', handle);
    expect([code, withoutWarnings(err)]).toEqual([1, [`groq: its models could not be listed: ${reason}`]]);
    expect(out.join()).not.toContain('key-of-the-operator');
  });
});
