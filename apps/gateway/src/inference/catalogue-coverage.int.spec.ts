import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isPrivate, readCatalogue } from '#catalogue';
import { type DomainEvent, hasDifferentCost } from '#domain';
import { ENCAPSULATED_KEY_HEADER, RESPONSE_NONCE_HEADER, sealRequest } from '#ehbp';
import { formatUsd, type PicoUsd } from '#kernel';
import { listCharges, sampleCases, type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(100);
});
afterAll(() => world.close());

const { models } = readCatalogue();
const chats = models.filter((model) => model.type === 'chat' && !isPrivate(model));
const secrets = models.filter(isPrivate).map(({ id }) => id);
const offers = sampleCases(
  chats.flatMap(({ id, endpoints }) => endpoints.map(({ slug }) => [id, slug] as const)),
  25,
);

test.each(offers)('serves %s at %s, non-streaming and streamed', async (model, slug) => {
  const provider = { only: [slug] };
  const whole = await world.sendChat(account, 'tokens=20 chunks=3', { model, provider });
  expect(whole.status).toBe(200);
  expect(whole.body).toMatchObject({ model, choices: [{ finish_reason: 'stop' }] });
  const stream = await world.sendChat(account, 'tokens=20 chunks=3', { model, provider, stream: true });
  expect(stream.text).toContain('"usage"');
  expect(stream.text).not.toContain('"error"');
});

test.each(secrets)('serves %s with encryption for its enclave, non-streaming and streamed', async (id) => {
  const { enclaveAttestationReport } = (await world.get(`/private/attestation?model=${id}`)).body;
  const { hpke_public_key, model } = JSON.parse(Buffer.from(enclaveAttestationReport.body, 'base64').toString());
  expect(`private/${model}`).toBe(id);
  for (const stream of [false, true]) {
    const messages = [{ role: 'user', content: '[[sandbox tokens=20 chunks=3]]' }];
    const chat = Buffer.from(JSON.stringify({ model, messages, stream }));
    const { encapsulatedKey, frames, openResponse } = await sealRequest(Buffer.from(hpke_public_key, 'hex'), chat);
    const authorization = `Bearer ${account.apiKey}`;
    const headers = { authorization, 'x-private-model': id, [ENCAPSULATED_KEY_HEADER]: encapsulatedKey };
    const sent = { method: 'POST', headers, body: Buffer.concat(frames) };
    const answer = await fetch(`${world.api}/private/v1/chat/completions`, sent);
    expect(answer.status).toBe(200);
    const pieces: Uint8Array[] = [];
    const opened = openResponse(answer.headers.get(RESPONSE_NONCE_HEADER) ?? '').open([await answer.bytes()]);
    for await (const piece of opened) pieces.push(piece);
    expect(Buffer.concat(pieces).toString()).toContain(stream ? 'data: [DONE]' : '"finish_reason":"stop"');
  }
});

test('records exactly the cost that the providers invoice for all of these requests', async () => {
  const facts = (await world.listEvents()) as readonly DomainEvent[];
  const costs = facts.flatMap((fact) => (fact.type === 'HoldSettled' ? [BigInt(fact.data.charge.cost)] : []));
  const owed = costs.reduce((sum, cost) => sum + cost, 0n);
  const bill = await world.bill.fetchTotal();
  expect(bill).toEqual({ total_usd: formatUsd(owed as PicoUsd), lines: 2 * (offers.length + secrets.length) });
});

test('records costs that agree with those that providers report', async () => {
  const items = listCharges(await world.listEvents()).flatMap((charge) => charge.items);
  const reported = items.filter(({ reportedCost }) => reportedCost !== undefined);
  const reporting = new Set(reported.map(({ creditor }) => creditor));
  expect([...reporting].sort()).toEqual(['deepinfra', 'openrouter']);
  expect(reported.filter(hasDifferentCost)).toEqual([]);
});

test('falls back from a failing endpoint to a more expensive one if that is allowed', async () => {
  const model = 'openai/gpt-oss-120b';
  const answer = await world.sendChat(account, 'tokens=4 fault=500 at=deepinfra', {
    model,
    provider: { allow_fallbacks: true },
  });
  expect(answer.status).toBe(200);
  expect(answer.body.provider).toBe('Groq');
});
