import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { extendDelay } from '#testing';
import { startSandbox } from './sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

interface Line {
  id: string;
  tokens: unknown;
  usd: string;
  fault?: string;
}

async function get<T>(path: string): Promise<T> {
  return (await fetch(sandbox.url + path)).json() as Promise<T>;
}

const bill = () => get<{ total_usd: string; lines: number }>('/bill');
const lines = () => get<Line[]>('/bill/lines');

function ask(
  content: string,
  more: Record<string, unknown> = {},
  signal?: AbortSignal,
  provider = 'openai',
): Promise<Response> {
  const body = JSON.stringify({ model: 'gpt-5-mini', messages: [{ role: 'user', content }], ...more });
  const request = { method: 'POST', headers: { authorization: 'Bearer any' }, body, ...(signal ? { signal } : {}) };
  return fetch(`${sandbox.url}/${provider}/v1/chat/completions`, request);
}

/** Sends a request. Returns the text of its response; a fixed text if the response is interrupted or missing. */
async function asked(content: string, more?: Record<string, unknown>): Promise<string> {
  return ask(content, more).then(
    (response) => response.text().catch(() => 'broken off'),
    () => 'no answer',
  );
}

describe('the bill', () => {
  test('is empty at first', async () => {
    expect(await bill()).toEqual({ total_usd: '0', lines: 0 });
    expect(await lines()).toEqual([]);
  });

  test('has a line for a response, under its id, exact to the pico-USD', async () => {
    // [ [ sandbox tokens = 20 reasonin g = 4 ] ] are 12 input tokens; the message format adds 7.
    const answer = JSON.parse(await asked('[[sandbox tokens=20 reasoning=4]]'));
    expect(answer.usage).toMatchObject({ prompt_tokens: 19, completion_tokens: 20 });
    expect(await lines()).toEqual([
      {
        id: answer.id,
        model: 'gpt-5-mini',
        tokens: { input: 19, cached_input: 0, output: 20 },
        usd: '0.00004475',
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      },
    ]);
  });

  test('charges cached input at its own price', async () => {
    const { usage } = JSON.parse(await asked('[[sandbox fault=cached]]', { model: 'gpt-5.4-mini' }));
    expect(usage).toMatchObject({ prompt_tokens: 15, prompt_tokens_details: { cached_tokens: 7 } });
    // 8 × 0.75 + 7 × 0.075 + 16 × 4.5 = 78.525 USD per million
    expect(await lines()).toMatchObject([
      { tokens: { input: 8, cached_input: 7, output: 16 }, usd: '0.000078525', fault: 'cached' },
    ]);
  });

  test.each([
    ['gpt-5-mini', '0.00003425'],
    ['gpt-5.4-mini', '0.00007875'],
    ['gpt-4o-mini', '0.00001095'],
    ['flat', '0.01'],
  ])('charges the model %s at its own prices', async (model, usd) => {
    await asked('Hi!', { model });
    expect(await bill()).toEqual({ total_usd: usd, lines: 1 });
  });

  test('sums all requests and charges every choice', async () => {
    await asked('Hi!', { model: 'flat' });
    await asked('Hi!', { model: 'flat', stream: true });
    await asked('Hi!', { n: 2 });
    expect(await bill()).toEqual({ total_usd: '0.02006625', lines: 3 });
  });

  test.each(['400', '429', '500', 'refuse', 'malformed'])('has no line for the fault %s', async (fault) => {
    await asked(`[[sandbox fault=${fault}]]`);
    await asked(`[[sandbox fault=${fault}]]`, { stream: true });
    expect(await bill()).toEqual({ total_usd: '0', lines: 0 });
  });

  test('has no line for a rejected request or one that timed out', async () => {
    await asked('Hi!', { n: 0 });
    await ask('[[sandbox fault=timeout]]', {}, AbortSignal.timeout(20)).catch(() => {});
    expect(await bill()).toEqual({ total_usd: '0', lines: 0 });
  });

  test('has a line of 0 USD for a response with zero usage, if the model has no price per request', async () => {
    await asked('[[sandbox fault=zero]]');
    expect(await lines()).toMatchObject([
      { usd: '0', fault: 'zero', tokens: { input: 0, cached_input: 0, output: 0 } },
    ]);
  });

  test('charges a response in full if its usage was not reported', async () => {
    await asked('[[sandbox fault=no_usage]]', { stream: true });
    expect(await lines()).toMatchObject([{ tokens: { input: 15, output: 16 }, fault: 'no_usage' }]);
  });

  test('charges the output of an interrupted stream: its reasoning and the delivered chunks', async () => {
    await asked('[[sandbox tokens=12 reasoning=2 chunks=5 fault=cut]]', { stream: true });
    // 10 visible tokens in 5 chunks: 2 chunks were delivered
    expect(await lines()).toMatchObject([{ tokens: { output: 2 + 4 }, fault: 'cut' }]);
  });

  test('charges an interrupted non-streaming response for its reasoning and half of its text', async () => {
    await asked('[[sandbox tokens=12 reasoning=2 fault=cut]]');
    expect(await lines()).toMatchObject([{ tokens: { output: 2 + 5 }, fault: 'cut' }]);
  });

  test('charges part of the output of a stream whose client has disconnected', async () => {
    const leaving = new AbortController();
    const more = { stream: true };
    const response = await ask('[[sandbox tokens=10 chunks=10 chunk_delay=20000]]', more, leaving.signal);
    await response.body?.getReader().read();
    leaving.abort();
    while ((await bill()).lines === 0);
    const [line] = (await lines()) as { tokens: { output: number } }[];
    expect(line?.tokens.output).toBeGreaterThan(0);
    expect(line?.tokens.output).toBeLessThan(10);
  });

  test('charges a chunk that a disconnect has interrupted for the time until then', async () => {
    const leaving = new AbortController();
    const directive = '[[sandbox tokens=100000 chunks=2 chunk_delay=20000]]';
    const response = await ask(directive, { stream: true }, leaving.signal);
    await response.body?.getReader().read();
    leaving.abort();
    while ((await bill()).lines === 0);
    const [line] = (await lines()) as { tokens: { output: number } }[];
    expect(line?.tokens.output).toBeGreaterThan(50_000);
    expect(line?.tokens.output).toBeLessThan(100_000);
  });

  test.each([
    ['a provider that stops bills a part', 'openai', 'gpt-5-mini', false],
    ['another one bills all', 'groq', 'openai/gpt-oss-20b', true],
  ])('charges a stream that a disconnect interrupts before its first byte: %s', async (_, provider, model, full) => {
    const generation = extendDelay(2_000);
    const leaving = new AbortController();
    const response = ask(
      '[[sandbox latency=2000 tokens=30000 chunks=1]]',
      { stream: true, model },
      leaving.signal,
      provider,
    );
    await generation.started;
    leaving.abort();
    await expect(response).rejects.toThrow();
    await bill(); // the sandbox has noticed the disconnect before it serves this
    generation.end();
    while ((await bill()).lines === 0);
    const [line] = (await lines()) as { tokens: { output: number } }[];
    expect(line?.tokens.output).toBeGreaterThan(0);
    expect(line?.tokens.output === 30_000).toBe(full);
  });

  test('names the directive of a request in its lines', async () => {
    await asked('[[sandbox id=wave-1]]');
    await asked('Hi!');
    const [first, second] = (await lines()) as { directive?: string }[];
    expect([first?.directive, second?.directive]).toEqual(['wave-1', undefined]);
  });

  test('charges a non-streaming response in full if its client has disconnected', async () => {
    const generation = extendDelay(150);
    const leaving = new AbortController();
    const response = ask('[[sandbox latency=150]]', {}, leaving.signal);
    await generation.started;
    leaving.abort();
    await expect(response).rejects.toThrow();
    await bill(); // the sandbox has noticed the disconnect before it serves this
    generation.end();
    while ((await bill()).lines === 0);
    expect(await lines()).toMatchObject([{ tokens: { output: 16 } }]);
  });

  test('returns all of its lines when there are more than 1,000', async () => {
    await Promise.all(Array.from({ length: 1_100 }, () => asked('Hi!', { model: 'flat' })));
    expect(new Set((await lines()).map(({ id }) => id)).size).toBe(1_100);
    expect((await bill()).total_usd).toBe('11');
  });
});
