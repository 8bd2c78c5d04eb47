/**
 * An event records its actor and, as its correlation id, the request or top-up that it belongs to. The events of a
 * top-up also record the request or event that caused them.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DomainEvent } from '#domain';
import type { StoredEvent } from '#kernel';
import { type TestAccount, TestWorld } from '#testing';

let world: TestWorld;
let account: TestAccount;
let keyId: string;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  account = await world.createAccount(1);
  const headers = { 'x-credit-id': account.creditId };
  keyId = (await world.send('GET', '/keys', { headers })).body.data[0]._id;
});
afterAll(() => world.close());

const causeOf = ({ metadata }: StoredEvent<DomainEvent>) => {
  const { version, ...cause } = metadata;
  return cause;
};
/** The cause of an event of an account that a request triggered directly: it has no causation id. */
const by = (actor: string, id: unknown) => ({ actor, $correlationId: id });

test('records the anonymous actor and one correlation id when an account is opened', async () => {
  const [opened, key] = (await world.listEvents(account)).map(causeOf);
  expect(opened).toEqual(by('anybody', expect.stringMatching(/^[0-9a-f-]{36}$/)));
  expect(key).toEqual(opened);
});

test('records the key and the request when a key pays', async () => {
  const { headers } = await world.sendChat(account);
  const request = by(`key:${keyId}`, headers.get('x-request-id'));
  expect((await world.listEvents(account)).slice(-2).map(causeOf)).toEqual([request, request]);
});

test('records the account as the actor when it changes its keys', async () => {
  const own = { 'x-credit-id': account.creditId };
  const made = await world.send('POST', '/keys', { headers: own, body: { name: 'k' } });
  const changed = await world.send('PATCH', `/keys/${made.body.data._id}`, { headers: own, body: { name: 'l' } });
  const revoked = await world.send('DELETE', `/keys/${made.body.data._id}`, { headers: own });
  const requests = [made, changed, revoked].map(({ headers }) => headers.get('x-request-id'));
  expect((await world.listEvents(account)).slice(-3).map(causeOf)).toEqual(
    requests.map((id) => by(`account:${world.getAccountId(account)}`, id)),
  );
});

test('correlates the events of a top-up from its request to its credit', async () => {
  const asked = await world.post('/topup/create/btc-lightning', { amount: 1, currency: 'USD' }, account);
  const id = asked.body.invoice_id;
  await world.payInvoice(asked.body.lightning_invoice);
  await world.waitUntil(async () => (await world.get(`/topup/status/${id}`)).body.status === 'Settled');
  const story = (await world.listEvents()).filter(({ metadata }) => metadata.$correlationId === id);
  const [issued, claimed, received, credited, marked] = story;
  const types = ['InvoiceIssued', 'PaymentClaimed', 'PaymentReceived', 'CreditAdded', 'TopupCredited'];
  expect(story.map(({ type }) => type)).toEqual(types);
  expect(issued?.metadata).toMatchObject({
    actor: `key:${keyId}`,
    $causationId: asked.headers.get('x-request-id'),
  });
  for (const fact of [claimed, received]) expect(fact?.metadata.actor).toBe('workflow:topups');
  for (const fact of [credited, marked])
    expect(fact?.metadata).toMatchObject({ actor: 'workflow:topups', $causationId: received?.id });
});
