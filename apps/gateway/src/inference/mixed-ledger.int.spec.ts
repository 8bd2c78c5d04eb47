import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DomainEvent } from '#domain';
import { formatUsd, type PicoUsd, parseUsd } from '#kernel';
import {
  isEstimated,
  isExplained,
  listCallItems,
  listCharges,
  sampleCases,
  sampleSize,
  type TestAccount,
  TestWorld,
} from '#testing';

/**
 * Models of several providers. They are called through chat completions and Responses, non-streaming and streamed, with
 * search and faults. The first model supports chat completions and Responses, the second one only Responses.
 */
const CHATS = [
  'openai/gpt-5-mini',
  'openai/gpt-5-codex',
  'anthropic/claude-haiku-4.5',
  'gpt-oss-120b',
  'perplexity/sonar:online',
];
const FAULTS = [
  '',
  'fault=cached',
  'fault=zero',
  'fault=500',
  'fault=429',
  'fault=refuse',
  'fault=no_usage',
  'fault=cut',
];
/** Faults of a later search round after which the usage of the earlier rounds is still known. */
const LATER = ['', 'fault=cached', 'fault=500', 'fault=overloaded', 'fault=refuse'];
const EMBEDDINGS = [
  { model: 'text-embedding-3-small' },
  { model: 'qwen/qwen3-embedding-8b', provider: { order: ['deepinfra'] } },
];
/** Faults after which the invoice of the provider is unknown, so the ledger has an estimate. */
const UNREPORTED = new Set(['no_usage', 'zero', 'cut', 'malformed', 'error']);

let world: TestWorld;
let account: TestAccount;
let funded: string;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(100);
  funded = await world.fetchBalance(account);
  const asks = CHATS.flatMap((model) => FAULTS.flatMap((fault) => chats(model, fault)));
  const embeddings = EMBEDDINGS.flatMap((asked) =>
    FAULTS.flatMap((fault) => [fault, `${fault} at=deepinfra`]).map((fault) => {
      const body = { ...asked, input: ['A text to embed', `[[sandbox ${fault}]]`] };
      return () => world.post('/v1/embeddings', body, account);
    }),
  );
  await Promise.all(sampleCases([...asks, ...embeddings], 75).map((ask) => ask()));
});
afterAll(() => world.close());

function chats(model: string, fault: string) {
  const content = `[[sandbox tokens=12 chunks=4 ${fault}]]`;
  const messages = [{ role: 'user', content }];
  const tools = [{ type: 'web_search' }];
  const ours = [{ type: 'web_search', engine: 'exa' }];
  const searching = `[[sandbox tool=web_search tool_times=2 chunks=4 ${fault}]]`;
  const searched = model.startsWith('perplexity')
    ? []
    : [false, true].flatMap((stream) => [
        () => {
          const asked = [{ role: 'user', content: searching }];
          return world.post('/v1/chat/completions', { model, messages: asked, stream, tools }, account);
        },
        () => world.post('/v1/responses', { model, input: searching, stream, tools }, account),
        () => world.post('/v1/responses', { model, input: searching, stream, tools: ours }, account),
        ...(LATER.includes(fault) ? [2, 3] : []).map((round) => () => {
          const later = searching.replace(']]', ` fault_round=${round}]]`);
          const asked = [{ role: 'user', content: later }];
          return world.post('/v1/chat/completions', { model, messages: asked, stream, tools: ours }, account);
        }),
      ]);
  const others = [false, true].flatMap((stream) => [
    () => world.post('/v1/chat/completions', { model, messages, stream, max_tokens: 64 }, account),
    () => world.post('/v1/chat/completions', { model, messages, stream, plugins: [{ id: 'web' }] }, account),
    () => world.post('/v1/responses', { model, input: content, stream }, account),
  ]);
  return [...searched, ...others];
}

test('records exactly the billed cost of a mixed run with faults, except for estimates', async () => {
  const facts = (await world.listEvents()) as readonly DomainEvent[];
  const charges = listCharges(facts);
  const lines = await world.bill.fetchLines();
  const reported = lines.filter(({ fault }) => !UNREPORTED.has(fault ?? ''));
  const invoiced = reported.reduce((sum, line) => sum + parseUsd(line.usd), 0n);
  // Only the cost at the provider of the model is an estimate. The cost of a search by another provider is known.
  const known = charges.flatMap((charge) => {
    const guessed = new Set(charge.items.flatMap(({ estimated, creditor }) => (estimated ? [creditor] : [])));
    return charge.items.filter(({ creditor }) => !guessed.has(creditor));
  });
  const owed = known.reduce((sum, { cost }) => sum + BigInt(cost), 0n);
  expect(charges.length).toBeGreaterThan(sampleSize(100, 25));
  expect(charges.some(isEstimated)).toBe(true);
  expect(formatUsd(owed as PicoUsd)).toBe(formatUsd(invoiced as PicoUsd));
});

test('explains every charge, including absorbed ones, by its items and the published prices', async () => {
  const facts = (await world.listEvents()) as readonly DomainEvent[];
  const lists = facts.flatMap((fact) => (fact.type === 'PriceListPublished' ? [fact.data] : []));
  const asked = new Map(facts.flatMap((fact) => (fact.type === 'FundsHeld' ? [[fact.data.holdId, fact.data]] : [])));
  let explained = 0;
  for (const fact of facts) {
    if (fact.type !== 'HoldSettled' && fact.type !== 'ChargeAbsorbed') continue;
    const { charge, holdId } = fact.data;
    const list = lists.find(({ version }) => version === charge.priceList);
    const { amount, query } = asked.get(holdId) ?? {};
    expect([holdId, isExplained(charge, list?.lines ?? [])]).toEqual([holdId, true]);
    for (const { of } of listCallItems(charge)) expect(of).toBe(query?.model);
    if (!isEstimated(charge)) expect(BigInt(charge.price)).toBeLessThanOrEqual(BigInt(amount ?? 0));
    explained++;
  }
  expect(explained).toBeGreaterThan(sampleSize(300, 25));
});

test('leaves no hold open, and reduces the balance by exactly the charged amounts', async () => {
  const facts = (await world.listEvents()) as readonly DomainEvent[];
  const made = facts.filter(({ type }) => type === 'FundsHeld').length;
  const ended = facts.filter(({ type }) => type === 'HoldSettled' || type === 'HoldReleased').length;
  expect(ended).toBe(made);
  const charged = facts.reduce((sum, fact) => sum + (fact.type === 'HoldSettled' ? BigInt(fact.data.charged) : 0n), 0n);
  expect(await world.fetchBalance(account)).toBe(formatUsd((parseUsd(funded) - charged) as PicoUsd));
});
