/** What a provider may invoice for a call without a response is in the event that ends the hold. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { DomainEvent } from '#domain';
import { createForm, extendTimeouts, type TestAccount, TestWorld, timeOut } from '#testing';

const IMAGE = 'openai/gpt-image-1-mini';

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());

type Route = readonly [path: string, createBody: (directive: string) => Record<string, unknown> | FormData];

const OPENAI = { provider: { only: ['openai'] } };
const IMAGES: Route = ['/v1/images/generations', (prompt) => ({ model: IMAGE, prompt, ...OPENAI })];
const ROUTES: readonly Route[] = [
  IMAGES,
  ['/v1/audio/speech', (input) => ({ model: 'openai/tts-1', input })],
  ['/v1/audio/transcriptions', (prompt) => createForm({ file: '@file', model: 'openai/whisper-1', prompt })],
  ['/v1/embeddings', (input) => ({ model: 'openai/text-embedding-3-small', input })],
  [
    '/v1/chat/completions',
    (content) => ({ model: 'openai/gpt-5-mini', max_tokens: 9, messages: [{ role: 'user', content }], ...OPENAI }),
  ],
];

async function findEnd(by: TestAccount): Promise<Extract<DomainEvent, { type: 'HoldReleased' }>['data'] | undefined> {
  const events = await world.listEvents(by);
  return events.find((event) => event.type === 'HoldReleased')?.data;
}

describe('a call that is aborted before its response', () => {
  test.each(ROUTES)('to %s records what the provider may invoice at most', async (path, createBody) => {
    const by = await world.createAccount(1.05);
    const headers = { authorization: `Bearer ${by.apiKey}` };

    const body = createBody('[[sandbox fault=timeout]]');
    const { status } = await timeOut(world, () => world.send('POST', path, { body, headers }));

    const { held, attempts = [] } = (await findEnd(by)) ?? {};
    expect([status, attempts]).toMatchObject([
      504,
      [{ outcome: 'timeout', openCost: expect.stringMatching(/^[1-9]\d*$/) }],
    ]);
    expect(BigInt(attempts[0]?.openCost ?? 0)).toBeLessThanOrEqual(BigInt(held ?? 0));
  });

  test('because its client disconnects records what the provider may invoice at most', async () => {
    const by = await world.createAccount(1.05);
    const [path, createBody] = IMAGES;
    const leave = new AbortController();
    const headers = { authorization: `Bearer ${by.apiKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify(createBody('[[sandbox fault=timeout]]'));
    const drain = extendTimeouts(world.foundation.settings.drainTimeoutMs);
    const asked = fetch(`${world.api}${path}`, { method: 'POST', headers, body, signal: leave.signal });
    await world.waitUntil(() => world.traffic.openCallCount > 0);
    leave.abort();
    await expect(asked).rejects.toThrow();
    await drain.started;
    drain.end();

    await world.waitUntil(async () => (await findEnd(by)) !== undefined);
    expect((await findEnd(by))?.attempts).toMatchObject([{ openCost: expect.any(String) }]);
  });
});

describe('a call that the provider rejects', () => {
  test.each(ROUTES)('to %s has no open cost', async (path, createBody) => {
    const by = await world.createAccount(1.05);
    const headers = { authorization: `Bearer ${by.apiKey}` };

    const { status } = await world.send('POST', path, { body: createBody('[[sandbox fault=400]]'), headers });

    const { attempts = [] } = (await findEnd(by)) ?? {};
    expect([status, attempts.length]).toEqual([400, 1]);
    expect(attempts[0]).not.toHaveProperty('openCost');
  });
});
