/** Webhooks of BTCPay Server, while nothing else triggers a poll. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { readPayments } from '#catalogue';
import { getCoin, type RequestedTopup, SandboxWallet, ScenarioRunner, sampleCases, TestWorld } from '#testing';

const HOOKS = '/topup/webhooks/btcpay';
const SECRET = 'sandbox';
const bitcoin = getCoin(readPayments(), 'BTC');

let world: TestWorld;
let wallet: SandboxWallet;
let teller: ScenarioRunner;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  opened.defer(() => world.close());
  wallet = new SandboxWallet(world.sandbox);
  teller = new ScenarioRunner(world);
  opened.defer(() => teller.close());
  opened.defer(async () => goOn());
  const goOn = world.stopClock();
});
afterAll(() => opened.disposeAsync());

const ask = () => teller.requestTopup(bitcoin, 'btc', 20, world.api);

async function pay(asked: RequestedTopup): Promise<void> {
  await wallet.pay(asked.destination, asked.units, bitcoin, { report: 'never' });
  await wallet.mine(bitcoin);
}

/** Creates, pays and reports another top-up, and waits for its credit: earlier polls have ended by then. */
async function another(): Promise<void> {
  const later = await ask();
  await pay(later);
  await post(event(later));
  await credited(later);
}

/** Creates a top-up that is paid and confirmed, but not reported. It was polled when it was new. */
async function paid(): Promise<RequestedTopup> {
  const asked = await ask();
  await another();
  await pay(asked);
  return asked;
}

/** The webhook in the format of BTCPay. */
function event({ topupId }: RequestedTopup): Buffer {
  const [issued] = teller.getEvents(topupId);
  const invoiceId = issued?.type === 'InvoiceIssued' ? issued.data.reference.split('/')[2] : '';
  const ids = { deliveryId: 'a', webhookId: 'b', originalDeliveryId: 'a', isRedelivery: false };
  const metadata = { orderId: topupId, paymentMethod: 'BTC-CHAIN' };
  const body = { ...ids, type: 'InvoiceSettled', timestamp: 1, storeId: 'sandbox', invoiceId, metadata };
  return Buffer.from(JSON.stringify(body, undefined, 2));
}

const signatureOf = (body: Buffer, secret = SECRET) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

async function post(body: Buffer, signature: string | undefined = signatureOf(body), path = HOOKS): Promise<number> {
  const headers = { 'content-type': 'application/json', ...(signature === '' ? {} : { 'btcpay-sig': signature }) };
  const response = await fetch(world.api + path, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}

const factsOf = ({ topupId }: RequestedTopup) => teller.getEvents(topupId).map(({ type }) => type);
const credited = (asked: RequestedTopup) => world.waitUntil(async () => factsOf(asked).includes('TopupCredited'));

describe('a webhook', () => {
  test('with a valid signature triggers a poll of its top-up, and the payment is credited', async () => {
    const asked = await paid();
    expect(factsOf(asked)).toEqual(['InvoiceIssued']);
    expect(await post(event(asked))).toBe(200);
    await credited(asked);
    expect(await world.fetchBalance(asked.account)).toBe('20');
  });

  test('is rejected and triggers no poll if any byte of the body or the signature is changed', async () => {
    const asked = await paid();
    const body = event(asked);
    const signature = signatureOf(body);
    const turned = (bytes: Buffer, at: number) =>
      Buffer.concat([bytes.subarray(0, at), turn(bytes[at]), bytes.subarray(at + 1)]);
    const forged = [
      ...Array.from(body, (_, at) => () => post(turned(body, at), signature)),
      ...Array.from(signature, (_, at) => () => post(body, turned(Buffer.from(signature), at).toString('latin1'))),
    ];
    const statuses = await Promise.all(sampleCases(forged, 80).map((send) => send()));
    expect(new Set(statuses)).toEqual(new Set([401]));
    await another();
    expect(factsOf(asked)).toEqual(['InvoiceIssued']);
    await post(body);
    await credited(asked);
  });

  test('changes nothing when it is replayed, even often and concurrently', async () => {
    const asked = await paid();
    const body = event(asked);
    await post(body);
    await credited(asked);
    const before = [...teller.getEvents(asked.topupId)];
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => post(body))))).toEqual(new Set([200]));
    await another();
    expect(teller.getEvents(asked.topupId)).toEqual(before);
    expect(await world.fetchBalance(asked.account)).toBe('20');
  });

  test('for an unknown top-up is accepted, and adds no event to another top-up', async () => {
    const asked = await paid();
    const body = Buffer.from(event(asked).toString().replaceAll(asked.topupId, 'x'.repeat(22)));
    expect(await post(body)).toBe(200);
    expect(factsOf(asked)).toEqual(['InvoiceIssued']);
  });

  test('for a top-up that is not in the read model yet gets 503, and triggers a poll when it is repeated', async () => {
    const lock = new pg.Client({ connectionString: world.databaseUrl });
    await lock.connect();
    try {
      await lock.query('begin; lock table books.topups in exclusive mode');
      const asked = await ask();
      await pay(asked);
      expect(await post(event(asked))).toBe(503);
      await lock.query('rollback');
      await world.waitUntil(async () => (await post(event(asked))) === 200);
      await credited(asked);
    } finally {
      await lock.end();
    }
  });

  test.each<[string, () => Promise<number>, number]>([
    ['without a signature', () => post(Buffer.from('{}'), ''), 401],
    ['without a body', () => post(Buffer.alloc(0)), 401],
    ['for a payment backend without webhooks', () => post(Buffer.from('{}'), undefined, '/topup/webhooks/lnd'), 404],
    ['for an unknown payment backend', () => post(Buffer.from('{}'), undefined, '/topup/webhooks/constructor'), 404],
    ['that is too large', () => post(Buffer.alloc(2_000_000, ' ')), 413],
  ])('%s is rejected', async (_, send, status) => {
    expect(await send()).toBe(status);
  });
});

/** Returns another byte that is valid in a header. */
function turn(byte = 0): Buffer {
  return Buffer.from([byte === 0x30 ? 0x31 : 0x30]);
}
