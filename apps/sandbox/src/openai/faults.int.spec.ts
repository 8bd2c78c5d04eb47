import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

function ask(content: string, more: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], ...more });
  const request = { method: 'POST', headers: { authorization: 'Bearer any' }, body, ...(signal ? { signal } : {}) };
  return fetch(`${sandbox.url}/openai/v1/chat/completions`, request);
}

async function usageOf(content: string): Promise<Record<string, unknown>> {
  return ((await (await ask(content)).json()) as { usage: Record<string, unknown> }).usage;
}

async function dataOf(response: Response): Promise<string[]> {
  const events = (await response.text()).split('\n\n').filter((event) => event !== '');
  return events.map((event) => event.replace(/^data: /, ''));
}

describe('a fault', () => {
  test.each([
    [400, 'invalid_request_error'],
    [429, 'requests'],
    [500, 'server_error'],
  ])("%p is an error in OpenAI's format", async (status, type) => {
    const response = await ask(`[[sandbox fault=${status}]]`);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '1' : null);
    expect(response.status).toBe(status);
    const error = { type, message: expect.any(String) };
    expect(await response.json()).toEqual({ error: expect.objectContaining(error) });
  });

  test('hits only the first calls with its id', async () => {
    const statusOf = async (id: string) => (await ask(`[[sandbox fault=500 fault_times=2 id=${id}]]`)).status;
    expect([await statusOf('a'), await statusOf('a'), await statusOf('b'), await statusOf('a')]).toEqual([
      500, 500, 500, 200,
    ]);
  });

  test('refuse closes the connection before the first byte', async () => {
    await expect(ask('[[sandbox fault=refuse]]')).rejects.toThrow('fetch failed');
  });

  test('timeout does not respond', async () => {
    await expect(ask('[[sandbox fault=timeout]]', {}, AbortSignal.timeout(30))).rejects.toThrow('timeout');
  });

  test('cut interrupts a non-streaming response in the middle of its body', async () => {
    const response = await ask('[[sandbox fault=cut]]');
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow('terminated');
  });

  test.each([
    { fault: 'cut', part: 'half of its chunks', complete: 1 + 4, incomplete: '' },
    {
      fault: 'cut_frame',
      part: 'half of its chunks and the start of the next',
      complete: 1 + 4,
      incomplete: 'data: {"id"',
    },
    { fault: 'cut_usage', part: 'all but its usage', complete: 1 + 8 + 1, incomplete: '' },
  ])('$fault breaks a stream after $part', async ({ fault, complete, incomplete }) => {
    const more = { stream: true, stream_options: { include_usage: true } };
    const response = await ask(`[[sandbox tokens=8 chunks=8 fault=${fault}]]`, more);
    let text = '';
    const read = async () => {
      for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
    };
    await expect(read()).rejects.toThrow('terminated');
    const events = text.split('\n\n');
    expect(events).toHaveLength(complete + 1);
    expect(events.at(-1)?.slice(0, 'data: {"id"'.length)).toBe(incomplete);
    expect(events[complete - 1]?.includes('"finish_reason":"stop"')).toBe(fault === 'cut_usage');
  });

  test('malformed is a 200 that is not JSON', async () => {
    const response = await ask('[[sandbox fault=malformed]]');
    expect(response.status).toBe(200);
    await expect(response.json()).rejects.toThrow('JSON');
  });

  test('malformed sends a data line that is not JSON before any content of a stream', async () => {
    for (const n of [1, 2]) {
      const data = await dataOf(await ask('[[sandbox fault=malformed]]', { stream: true, n }));
      expect(data).toHaveLength(n + 1);
      expect(() => JSON.parse(data.at(-1) ?? '')).toThrow(SyntaxError);
    }
  });

  test('no_usage leaves out the usage', async () => {
    expect(await usageOf('[[sandbox fault=no_usage]]')).toBeUndefined();
    const stream = { stream: true, stream_options: { include_usage: true } };
    const data = await dataOf(await ask('[[sandbox fault=no_usage]]', stream));
    expect(data.some((json) => json.includes('"usage"'))).toBe(false);
  });

  test('zero reports a usage of zero', async () => {
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    expect(await usageOf('[[sandbox fault=zero]]')).toMatchObject(zeros);
  });

  test('cached reports half of the input as cached', async () => {
    const { prompt_tokens, prompt_tokens_details } = await usageOf('[[sandbox fault=cached]]');
    expect(prompt_tokens_details).toMatchObject({ cached_tokens: Math.floor(Number(prompt_tokens) / 2) });
  });
});
