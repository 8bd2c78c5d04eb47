import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OperatorProblems } from '#application';
import { readProviders } from '#catalogue';
import { createProviders } from '#connectors';
import { createTestRuntime } from '#testing';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

const checked = readProviders().filter(({ keyCheck }) => keyCheck !== undefined);

describe.each(checked.map(({ slug }) => slug))('the key of %s', (slug) => {
  test.each([
    ['a key', [], []],
    [' ', [slug], []],
  ])('is checked by the free call of the catalogue: %j', async (credential, rejections, unknown) => {
    const rejected = new OperatorProblems(createTestRuntime());
    const providers = readProviders().filter((provider) => provider.slug === slug);
    const connections = providers.map(({ sandboxPath }) => {
      return [slug, { baseUrl: `${sandbox.url}${sandboxPath}`, credential }] as const;
    });
    const settings = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000, providers: new Map(connections) };
    const connected = createProviders(providers, settings, rejected);
    await fetch(`${sandbox.url}/bill`, { method: 'DELETE' });
    const unchecked: string[] = [];

    await connected.checkKeys(new AbortController().signal, (upstream) => unchecked.push(upstream));
    await connected.close();

    expect([rejected.listRejected(), unchecked]).toEqual([rejections, unknown]);
    expect(await (await fetch(`${sandbox.url}/bill`)).json()).toMatchObject({ lines: 0 });
  });
});

test('the keys of most kinds of providers are checked', () => {
  const protocols = new Set(checked.map(({ protocol }) => protocol));
  expect([...protocols].sort()).toEqual(['anthropic', 'data', 'deepgram', 'elevenlabs', 'google', 'openai']);
});
