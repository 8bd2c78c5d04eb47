/** Keys of providers that are checked at the start, and what customers and the operator get if they are invalid. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readCatalogue, readProviders } from '#catalogue';
import { createAudioFile, LogTap, type TestAccount, TestWorld } from '#testing';
import { respondWithJson, StubServer } from '../../../../libs/testing/src/servers/stub-server.ts';

const KEY = 'key-that-is-rejected';
/** Providers whose keys are rejected; those of fal and Exa are not checked at the start. */
const REJECTING = ['anthropic', 'deepgram', 'elevenlabs', 'exa', 'fal', 'google', 'hunter', 'openai'];
const CHECKED = REJECTING.filter((slug) => readProviders().some((it) => it.slug === slug && it.keyCheck));
const KEY_FILE = 'OPENAI_API_KEY_FILE';

const INVALID_KEY = {
  error: { status: 'INVALID_ARGUMENT', message: `${KEY} ?`, details: [{ reason: 'API_KEY_INVALID' }] },
};
const rejectKey = (slug: string) => respondWithJson(INVALID_KEY, slug === 'google' ? 400 : 401);

let directory: string;
let server: StubServer;
let url: string;
let log: LogTap;
let world: TestWorld;
let account: TestAccount;
let acceptedKey: string;

beforeAll(async () => {
  acceptedKey = '';
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-keys-'));
  log = new LogTap();
  server = new StubServer();
  server.handler = (response, request, body) => {
    const slug = request.url?.split('/')[1] ?? '';
    if (request.headers.authorization === `Bearer ${acceptedKey}`) respondWithJson({})(response, request, body);
    else if (slug === 'groq') respondWithJson({}, 500)(response, request, body);
    else rejectKey(slug)(response, request, body);
  };
  url = await server.listen();
  await writeKey(KEY);
  const settings = readProviders().flatMap(({ slug, env }): (readonly [string, string])[] =>
    ['groq', ...REJECTING].includes(slug)
      ? [[`${env}_BASE_URL`, `${url}/${slug}`], slug === 'openai' ? [KEY_FILE, toKeyPath()] : [`${env}_API_KEY`, KEY]]
      : [],
  );
  world = await TestWorld.open({ ...Object.fromEntries(settings), LOG_LEVEL: 'info' });
  account = await world.createAccount(20);
  await world.waitUntil(async () => (await findRejected()).length >= CHECKED.length);
});
afterAll(async () => {
  await world.close();
  log.restore();
  await server.close();
  await rm(directory, { recursive: true });
});

const toKeyPath = () => path.join(directory, 'openai');
const writeKey = (key: string) => writeFile(toKeyPath(), key);

async function readHealth() {
  const { status, body } = await world.get('/health/ready');
  return { status, ...body.checks.credentials };
}
const findRejected = async (): Promise<readonly string[]> => (await readHealth()).rejected;

function listLines(
  text: RegExp,
): readonly { readonly level: string; readonly msg: string; readonly err: { message: string } }[] {
  const lines = log.text.split('\n').filter((line) => line.startsWith('{'));
  return lines.map((line) => JSON.parse(line)).filter(({ msg }) => text.test(msg));
}
const listRejections = (slug: string) => listLines(new RegExp(`^the provider ${slug} rejects its credential`));

describe('at the start', () => {
  test('a rejected key is one line of the log with its setting and the models that no other provider serves', () => {
    for (const slug of CHECKED) {
      const [line, ...more] = listRejections(slug);
      expect([slug, line?.level, more]).toEqual([slug, 'error', []]);
    }
    const [anthropic] = listRejections('anthropic');
    expect(anthropic?.msg).toBe('the provider anthropic rejects its credential (ANTHROPIC_API_KEY)');
    expect(anthropic?.err.message).toMatch(
      /^requests for anthropic\/.*, anthropic\/claude-haiku-4\.5, .* fail with 503 until it is replaced$/,
    );
    expect(listRejections('openai')[0]?.msg).toContain(`(${KEY_FILE})`);
    expect(listRejections('openai')[0]?.err.message).toMatch(/ and \d+ more fail/);
    expect(log.text).not.toContain(KEY);
  });

  test('health lists the providers and the models, and the process is ready', async () => {
    const { status, ok, required, unserved } = await readHealth();
    expect([status, ok, required]).toEqual([200, false, false]);
    expect(await findRejected()).toEqual(expect.arrayContaining(CHECKED));
    const claudes = readCatalogue().models.filter(({ id }) => id.startsWith('anthropic/'));
    expect(unserved.anthropic.count).toBe(claudes.length);
    expect(unserved.anthropic.models).toContain('anthropic/claude-haiku-4.5');
    expect(unserved.hunter).toEqual({ count: 1, models: ['email/email-verifier'] });
    expect(unserved.openai.models).toHaveLength(20);
    expect(unserved.openai.count).toBeGreaterThan(20);
    expect(JSON.stringify(await readHealth())).not.toContain(KEY);
  });

  test('a provider that fails neither accepts nor rejects its key', async () => {
    expect(await findRejected()).not.toContain('groq');
    await world.waitUntil(async () => listLines(/could not be checked/).length > 0);
    expect(listLines(/could not be checked/)).toMatchObject([{ level: 'info', provider: 'groq' }]);
  });
});

describe('a request to a provider that rejects its key', () => {
  const messages = [{ role: 'user', content: 'Hello' }];
  const form = () => {
    const body = new FormData();
    body.append('file', new File([new Uint8Array(createAudioFile('wav', { seconds: 1 }))], 'a.wav'));
    body.append('model', 'openai/whisper-1');
    return body;
  };
  test.each<[string, string, object | (() => FormData)]>([
    ['OpenAI', '/v1/chat/completions', { model: 'openai/gpt-5-mini', messages }],
    ['OpenAI, streamed', '/v1/chat/completions', { model: 'openai/gpt-5-mini', messages, stream: true }],
    ['OpenAI', '/v1/responses', { model: 'openai/gpt-5-mini', input: 'Hello' }],
    ['OpenAI, streamed', '/v1/responses', { model: 'openai/gpt-5-mini', input: 'Hello', stream: true }],
    ['OpenAI', '/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'Hello' }],
    ['OpenAI', '/v1/images/generations', { model: 'openai/gpt-image-1-mini', prompt: 'A coin' }],
    ['OpenAI', '/v1/audio/speech', { model: 'openai/tts-1', voice: 'alloy', input: 'Hello' }],
    ['OpenAI', '/v1/audio/transcriptions', form],
    ['Anthropic', '/v1/messages', { model: 'anthropic/claude-haiku-4.5', messages, max_tokens: 9 }],
    ['Anthropic', '/v1/chat/completions', { model: 'anthropic/claude-haiku-4.5', messages, stream: true }],
    ['Google and fal', '/v1/images/generations', { model: 'google/nano-banana-2', prompt: 'A coin' }],
    ['fal', '/v1/images/generations', { model: 'google/imagen-4', prompt: 'A coin' }],
    ['Deepgram', '/v1/audio/speech', { model: 'deepgram_aura_2', voice: 'aura-2-thalia-en', input: 'Hello' }],
    ['ElevenLabs', '/v1/audio/speech', { model: 'eleven_v3', voice: 'JBFqnCBsd6RMkjVDRZzb', input: 'Hello' }],
    ['Hunter', '/v1/data/api/email/email-verifier', { email: 'a@example.org' }],
    ['Exa', '/v1/data/api/web/search', { query: 'coins' }],
  ])('of %s gets 503 without a charge: POST %s', async (_, route, body) => {
    const balance = await world.fetchBalance(account);
    const sent = typeof body === 'function' ? body() : body;
    const { status, headers, text } = await world.send('POST', route, {
      body: sent,
      headers: { authorization: `Bearer ${account.apiKey}` },
    });
    expect([status, headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[1-9]\d?$/)]);
    expect(text).not.toMatch(/\b401\b|api.?key/i);
    expect(await world.fetchBalance(account)).toBe(balance);
  });

  test('adds no line to that of the first rejection', () => {
    for (const slug of REJECTING) expect([slug, listRejections(slug).length]).toEqual([slug, 1]);
    expect(listLines(/a request failed/)).toEqual([]);
  });
});

describe('a key that is replaced while the process runs', () => {
  const isRejected = async () => (await findRejected()).includes('openai');
  const countChecks = () => server.requests.filter(({ line }) => line === 'GET /openai/models').length;
  beforeEach(() => {
    acceptedKey = '';
  });

  async function replaceKey(key: string): Promise<void> {
    const checks = countChecks();
    await writeKey(key);
    await world.readSecretsAgain();
    await world.waitUntil(async () => countChecks() > checks);
  }

  test('is checked: a valid one ends the rejection without a request', async () => {
    acceptedKey = 'valid-key';
    await replaceKey('valid-key');
    await world.waitUntil(async () => !(await isRejected()));
  });

  test('is checked: an invalid one is listed without a request', async () => {
    await replaceKey('another-invalid-key');
    await world.waitUntil(isRejected);
  });

  test('is checked once', async () => {
    const checks = countChecks();
    await world.readSecretsAgain();
    expect(countChecks()).toBe(checks);
  });
});

test('an accepted key is neither in health nor in the log', async () => {
  const linesBefore = log.text.length;
  acceptedKey = 'valid-key';
  const requestsBefore = server.requests.length;
  const accepting = await TestWorld.open({ OPENAI_API_KEY: acceptedKey, OPENAI_BASE_URL: url, LOG_LEVEL: 'info' });
  try {
    await accepting.waitUntil(async () => server.requests.length > requestsBefore);
    await accepting.waitUntil(async () => (await accepting.get('/health/ready')).status === 200);
    const { checks } = (await accepting.get('/health/ready')).body;
    expect(checks.credentials).toMatchObject({ ok: true, rejected: [], unserved: {} });
  } finally {
    await accepting.close();
  }
  expect(log.text.slice(linesBefore)).not.toMatch(/rejects its credential|could not be checked/);
});
