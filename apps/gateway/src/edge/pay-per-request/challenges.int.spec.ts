import { createHash, randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { fetch402, fetchWithL402, fetchWithMpp } from '@getalby/lightning-tools';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import pg from 'pg';
import { CatalogueService, Clock, Streams } from '#application';
import { verify } from '#audit';
import type { ChallengeIssued } from '#domain';
import {
  listCharges,
  PIXEL,
  sampleCases,
  sampleSize,
  shiftClock,
  TEST_CAUSE,
  type TestResponse,
  TestWorld,
} from '#testing';

const BANANA = 'google/nano-banana-2';
const PATH = '/v1/images/generations';
const VIDEO = { model: 'kling/kling-2.5-turbo', prompt: 'A harbour at dusk', duration: 5 };
const PROBLEMS = 'https://paymentauth.org/problems/';

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.openWithSagas({ CHALLENGES_PER_MINUTE: '10000', CHALLENGES_PER_MINUTE_IN_ALL: '10000' });
});
afterAll(() => world.close());

const coin = (prompt = 'A coin', more: object = {}) => ({
  model: BANANA,
  prompt,
  provider: { only: ['fal'] },
  ...more,
});
const withProof = (authorization: string) => ({ authorization });
const ask = (body: unknown = coin(), headers = {}, api = world.api) => world.send('POST', PATH, { body, headers, api });

interface Asked {
  readonly id: string;
  readonly realm: string;
  readonly method: string;
  readonly intent: string;
  readonly request: string;
  readonly description: string;
  readonly expires: string;
}

/** The parameters of one scheme in a header that may have several. */
function parametersOf(scheme: string, { headers }: TestResponse): Readonly<Record<string, string>> {
  const text = headers.get('www-authenticate') ?? '';
  const part = text.slice(text.search(new RegExp(`(^|, )${scheme} `)));
  const end = part.slice(1).search(/, [A-Z]\w+ \w+="/);
  const own = end < 0 ? part : part.slice(0, end + 1);
  return Object.fromEntries([...own.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
}

/** Requests and pays a challenge. Returns the challenge and the preimage of its payment. */
async function paid(body: unknown = coin(), path = PATH) {
  const answer = await world.send('POST', path, { body });
  expect(answer.status).toBe(402);
  const { invoice, ...challenge } = parametersOf('Payment', answer) as unknown as Asked & { readonly invoice: string };
  const { preimage } = (await world.payInvoice(invoice)).body as { readonly preimage: string };
  return { challenge: challenge as Asked, preimage, token: parametersOf('L402', answer).token ?? '' };
}

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const payment = (challenge: object, preimage: string) =>
  withProof(`Payment ${base64url({ challenge, payload: { preimage } })}`);

/** The events of a challenge, by the id that clients know. */
async function factsOf(id: string) {
  const uuid = Buffer.from(id, 'base64url').toString('hex', 0, 16);
  return world.listStream(`challenge-${uuid.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')}`);
}
const typesOf = async (id: string) => (await factsOf(id)).map(({ type }) => type);

/** The wallet of the clients below: the sandbox pays the invoices. */
const wallet = { payInvoice: async ({ invoice }: { invoice: string }) => (await world.payInvoice(invoice)).body };

describe('an unpaid request', () => {
  test('without a credential gets a challenge of both schemes, and no provider is called', async () => {
    const before = (await world.listEvents()).length;
    await world.bill.clear();
    const lines = await new Promise<readonly string[]>((resolve, reject) => {
      const sent = httpRequest(`${world.api}${PATH}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      });
      sent.once('response', ({ rawHeaders }) =>
        resolve(rawHeaders.flatMap((name, i) => (name === 'www-authenticate' ? [rawHeaders[i + 1] ?? ''] : []))),
      );
      sent.once('error', reject).end(JSON.stringify(coin()));
    });
    expect(lines.map((line) => line.split(' ')[0])).toEqual(['Payment', 'L402']);
    // In the form that aperture and lnget parse.
    expect(lines[1]).toMatch(/^L402 macaroon="(.*?)", invoice="(.*?)"/);
    expect(lines.join('').length).toBeLessThan(4_096);
    const answer = await ask();
    const { invoice = '', ...payment } = parametersOf('Payment', answer);
    const { id = '', request = '', expires = '' } = payment;
    const { invoice: same, macaroon, token, version } = parametersOf('L402', answer);
    expect(payment).toMatchObject({ realm: new URL(world.api).host, method: 'lightning', intent: 'charge' });
    expect(payment.description).toBe(`image generation: ${BANANA}`);
    expect([same, macaroon, version]).toEqual([invoice, token, '0']);
    const decoded = JSON.parse(Buffer.from(request, 'base64url').toString());
    const paymentHash = expect.stringMatching(/^[0-9a-f]{64}$/);
    const methodDetails = { invoice, paymentHash, network: 'regtest' };
    expect(decoded).toEqual({ amount: '92', currency: 'sat', methodDetails });
    expect(Buffer.from(canonicalize(decoded) ?? '').toString('base64url')).toBe(request);
    expect(expires).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(Date.parse(expires) - Date.now()).toBeLessThanOrEqual(900_000);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body).toMatchObject({
      status: 'error',
      statusCode: 402,
      type: `${PROBLEMS}payment-required`,
      title: 'Payment required',
      challengeId: id,
      invoice,
      payment_hash: decoded.methodDetails.paymentHash,
      amount_sats: 92,
      expires_at: expires,
    });
    const facts = (await world.listEvents()).slice(before);
    expect(facts.map(({ type }) => type)).toEqual(['ChallengeIssued', 'ChallengeIssued']);
    expect(JSON.stringify(facts.map(({ data }) => data))).not.toContain('A coin');
    expect((await world.bill.fetchTotal()).lines).toBe(0);
  });

  test.each<[string, number, unknown]>([
    ['an unknown model', 404, coin('A coin', { model: 'nobody/nothing' })],
    ['an invalid field', 400, coin('A coin', { n: 5 })],
    ['a body that is not JSON', 400, '{'],
    ['text that is not Unicode', 400, '{"model":"google/nano-banana-2","prompt":"A coin","user":"\\ud800"}'],
    ['a body of more than 64 KiB', 413, coin('A coin', { user: 'x'.repeat(65_536) })],
  ])('is rejected for %s with %d and no challenge', async (_, status, body) => {
    const answer = await ask(body);
    expect([answer.status, answer.headers.has('www-authenticate')]).toEqual([status, false]);
  });

  test.each<[string, Record<string, string>]>([
    ['an invalid API key', { authorization: 'Bearer sk-wrong' }],
    ['an empty bearer', { authorization: 'Bearer ' }],
    ['an empty Authorization', { authorization: '' }],
    ['another scheme', { authorization: 'Basic dTpw' }],
    ['an empty x-api-key', { 'x-api-key': '' }],
    ['an empty api-key and a proof', { 'api-key': '', authorization: `L402 ${'A'.repeat(43)}:${'0'.repeat(64)}` }],
    ['a credit id', { 'x-credit-id': '00000000-0000-4000-8000-000000000000' }],
  ])('with %s gets status 401 and no challenge', async (_, headers) => {
    const { status, headers: answered } = await ask(coin(), headers);
    expect([status, answered.has('www-authenticate')]).toEqual([401, false]);
  });

  test('with the key of an account without money gets 402 without a challenge', async () => {
    const answer = await world.post(PATH, coin(), await world.createAccount());
    expect([answer.status, answer.headers.has('www-authenticate')]).toEqual([402, false]);
    expect(answer.body.error.code).toBe('insufficient_quota');
  });
});

describe('unmodified clients of @getalby/lightning-tools', () => {
  const json = (body: object = coin()) => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const clients = Object.entries({ fetch402, fetchWithL402, fetchWithMpp });

  test.each(clients)('%s pays and gets its response', async (_, client) => {
    const response = await client(`${world.api}${PATH}`, json(), { wallet: wallet as never });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ model: BANANA, cost: 0.092 });
    expect(response.headers.get('cache-control')).toBe('private, no-store');
    expect(response.payment).toMatchObject({ paid: true, amountSat: 92 });
  });

  test.each(sampleCases(clients, 1, 1))('%s repeats an upload with another boundary', async (_, client) => {
    const body = new FormData();
    body.set('model', BANANA);
    body.set('prompt', 'At night');
    body.set('image', new Blob([new Uint8Array(PIXEL)], { type: 'image/png' }), 'pixel.png');
    const response = await client(
      `${world.api}/v1/images/edits`,
      { method: 'POST', body },
      { wallet: wallet as never },
    );
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ data: [{ b64_json: expect.any(String) }] });
  });

  test.each(sampleCases(clients, 1, 2))('%s gets the id of its video', async (_, client) => {
    const response = await client(`${world.api}/v1/videos`, json(VIDEO), { wallet: wallet as never });
    expect(response.status).toBe(202);
    expect(await response.json()).toMatchObject({ id: expect.stringMatching(/^gen_/) });
  });
});

describe('a proof', () => {
  test('is accepted as Payment, L402 or LSAT, by its token or its id, in several notations', async () => {
    const spellings: ((given: Awaited<ReturnType<typeof paid>>) => string)[] = [
      ({ token, preimage }) => `L402 ${token}:${preimage}`,
      ({ token, preimage }) => `lsat ${token}:${preimage.toUpperCase()}`,
      ({ challenge, preimage }) => `L402 ${challenge.id}:${preimage}`,
      ({ token, preimage }) => `L402 AAAA,${token}:${preimage}`,
      ({ token, preimage }) => `LSAT ${token}:${preimage}, L402 ${token}:${preimage}`,
      ({ challenge: { id }, preimage }) =>
        `Payment ${Buffer.from(JSON.stringify({ challenge: { id }, payload: { preimage } }))
          .toString('base64')
          .replaceAll('+', '-')
          .replaceAll('/', '_')}`,
      ({ challenge, preimage }) => `payment ${base64url({ challenge, payload: { preimage } })}`,
    ];
    const given = await paid(); // for the first request; the others get its saved response
    for (const spelling of spellings) {
      const answer = await ask(coin(), withProof(spelling(given)));
      expect([spelling.toString(), answer.status]).toEqual([spelling.toString(), 200]);
    }
  });

  test('is accepted from two Authorization headers, as sent by clients that know LSAT', async () => {
    const { token, preimage } = await paid();
    const status = await new Promise((resolve, reject) => {
      const headers = ['LSAT', 'L402'].flatMap((scheme) => ['Authorization', `${scheme} ${token}:${preimage}`]);
      const type = ['Content-Type', 'application/json', 'Host', 'gateway'];
      const sent = httpRequest(`${world.api}${PATH}`, { method: 'POST', headers: [...headers, ...type] });
      sent.once('response', (answer) => resolve(answer.statusCode)).once('error', reject);
      sent.end(JSON.stringify(coin()));
    });
    expect(status).toBe(200);
  });

  test('pays once for its request, with a receipt; then the saved response is returned', async () => {
    await world.bill.clear();
    const { challenge, preimage } = await paid();
    const first = await ask(coin(), payment(challenge, preimage));
    // Serialised differently, and sent to the other path of the same route.
    const anew = JSON.stringify(Object.fromEntries(Object.entries(coin()).reverse()), null, 2);
    const again = await world.send('POST', '/images/generations', {
      body: anew,
      headers: payment(challenge, preimage),
    });
    expect([first.status, again.status, again.text]).toEqual([200, 200, first.text]);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    for (const { headers } of [first, again]) {
      const receipt = JSON.parse(Buffer.from(headers.get('payment-receipt') ?? '', 'base64url').toString());
      const reference = createHash('sha256').update(Buffer.from(preimage, 'hex')).digest('hex');
      expect(receipt).toMatchObject({ method: 'lightning', challengeId: challenge.id, reference, status: 'success' });
      expect([headers.get('cache-control'), JSON.stringify([...headers])]).toEqual([
        'private, no-store',
        expect.not.stringContaining(preimage),
      ]);
    }
    expect(await typesOf(challenge.id)).toEqual(['ChallengeIssued', 'ChallengePaid', 'FundsHeld', 'HoldSettled']);
    expect((await world.bill.fetchTotal()).lines).toBe(1);
  });

  test('serves one of many concurrent requests; the others get the same response, or have to wait', async () => {
    await world.bill.clear();
    const { challenge, preimage } = await paid();
    const shown = await Promise.all(
      Array.from({ length: sampleSize(50, 10) }, () => ask(coin(), payment(challenge, preimage))),
    );
    const served = shown.filter(({ status }) => status === 200);
    expect(new Set(served.map(({ text }) => text)).size).toBe(1);
    const waiting = shown.filter(({ status }) => status !== 200);
    expect(new Set(waiting.map(({ status, headers }) => `${status} ${headers.get('retry-after')}`))).toEqual(
      new Set(['409 2']),
    );
    expect((await world.bill.fetchTotal()).lines).toBe(1);
    expect((await typesOf(challenge.id)).filter((type) => type === 'HoldSettled')).toHaveLength(1);
  });

  test('can be used again if its request failed', async () => {
    const body = coin('[[sandbox id=later fault=500 fault_times=3]]');
    const { challenge, preimage } = await paid(body);
    const failed = await ask(body, payment(challenge, preimage));
    expect([failed.status, failed.headers.has('payment-receipt')]).toEqual([502, false]);
    expect((await ask(body, payment(challenge, preimage))).status).toBe(200);
    const ends = ['HoldReleased', 'FundsHeld', 'HoldSettled'];
    expect((await typesOf(challenge.id)).slice(3)).toEqual(ends);
    expect(listCharges(await factsOf(challenge.id)).map(({ price }) => price)).toEqual(['92000000000']);
  });
});

describe('a proof whose response was not saved', () => {
  /** Removes a saved response with an SQL update: `lost` is false if its gateway died, true if it was too large. */
  const leave = (id: string, set: string) =>
    world
      .getService(pg.Pool)
      .query(`update gateway.answers set answer = null, ${set} where payer_id = $1`, [
        Buffer.from(id, 'base64url').toString('hex', 0, 16),
      ]);

  test('because its gateway died is accepted again later, at the expense of the operator', async () => {
    await world.bill.clear();
    const { challenge, preimage } = await paid();
    const show = () => ask(coin(), payment(challenge, preimage));
    const first = await show();
    await leave(challenge.id, 'lost = false');
    expect((await show()).status).toBe(409);
    const setBack = shiftClock(world.getService(Clock), 15_000);
    const second = await show();
    setBack();
    expect([second.status, second.headers.has('payment-receipt'), second.body.cost]).toEqual([200, true, 0]);
    expect(second.text).not.toBe(first.text);
    expect((await show()).text).toBe(second.text);
    expect(listCharges(await factsOf(challenge.id)).map(({ price }) => price)).toEqual(['92000000000', '92000000000']);
    expect((await world.bill.fetchTotal()).lines).toBe(2);
  });

  test('because the response was too large is rejected permanently', async () => {
    const { challenge, preimage } = await paid();
    expect((await ask(coin(), payment(challenge, preimage))).status).toBe(200);
    await leave(challenge.id, 'lost = true');
    const { status, headers, body } = await ask(coin(), payment(challenge, preimage));
    expect([status, headers.get('x-should-retry'), body.error.type]).toEqual([409, 'false', 'idempotency_answer_lost']);
  });
});

describe('a proof that does not pay for its request gets a new challenge and consumes nothing:', () => {
  type Given = Awaited<ReturnType<typeof paid>>;
  type Change = (given: Given) => Record<string, string>;
  const member =
    (name: keyof Asked, value: string): Change =>
    ({ challenge, preimage }) =>
      payment({ ...challenge, [name]: value }, preimage);
  let given: Given;
  beforeAll(async () => {
    given = await paid();
  });
  const otherId = (id: string) => `${id.slice(0, -2)}${id.at(-2) === 'A' ? 'B' : 'A'}${id.at(-1)}`;

  test.each<[string, string, Change]>([
    ['an unknown id', 'invalid-challenge', member('id', 'A'.repeat(43))],
    [
      'an id with another second half',
      'invalid-challenge',
      ({ challenge, preimage }) => payment({ id: otherId(challenge.id) }, preimage),
    ],
    ['an invalid id', 'invalid-challenge', member('id', 'id')],
    ['another realm', 'invalid-challenge', member('realm', 'elsewhere.example')],
    ['another method', 'method-unsupported', member('method', 'tempo')],
    ['another intent', 'invalid-challenge', member('intent', 'session')],
    ['another request', 'invalid-challenge', member('request', base64url({ amount: '1', currency: 'sat' }))],
    ['another expiry', 'invalid-challenge', member('expires', '2036-01-01T00:00:00Z')],
    ['another description', 'invalid-challenge', member('description', 'a yacht')],
    ['a digest', 'invalid-challenge', member('digest' as 'id', 'sha-256=:AAAA:')],
    ['opaque text', 'invalid-challenge', member('opaque' as 'id', 'e30')],
    ['another preimage', 'verification-failed', ({ challenge }) => payment(challenge, '0'.repeat(64))],
    [
      'a preimage in capitals',
      'malformed-credential',
      ({ challenge, preimage }) => payment(challenge, preimage.toUpperCase()),
    ],
    ['half a preimage', 'malformed-credential', ({ challenge, preimage }) => payment(challenge, preimage.slice(32))],
    ['no id', 'malformed-credential', ({ preimage }) => payment({}, preimage)],
    ['an id that is a number', 'malformed-credential', ({ preimage }) => payment({ id: 1 }, preimage)],
    [
      'a member that is a number',
      'malformed-credential',
      ({ challenge, preimage }) => payment({ ...challenge, realm: 1 }, preimage),
    ],
    ['invalid JSON', 'malformed-credential', () => withProof('Payment AAAA')],
    [
      'standard base64',
      'malformed-credential',
      ({ challenge, preimage }) => withProof(`${payment(challenge, preimage).authorization}+/`),
    ],
    [
      'bits after the last byte',
      'malformed-credential',
      ({ challenge: { id }, preimage }) => withProof(lax({ challenge: { id }, payload: { preimage } })),
    ],
    ['nothing after Payment', 'malformed-credential', () => withProof('Payment')],
    ['L402 without a preimage', 'malformed-credential', ({ token }) => withProof(`L402 ${token}`)],
    ['L402 with another preimage', 'verification-failed', ({ token }) => withProof(`L402 ${token}:${'0'.repeat(64)}`)],
    [
      'a modified token',
      'invalid-challenge',
      ({ token, preimage }) => withProof(`L402 ${token.slice(0, -6)}AAAAA=:${preimage}`),
    ],
    ['another issuer’s token', 'invalid-challenge', ({ preimage }) => withProof(`L402 AgEEaG9zdAJCAAA=:${preimage}`)],
  ])('%s: %s', async (_, problem, change) => {
    const answer = await ask(coin(), change(given));
    expect([answer.status, answer.body.type]).toEqual([402, PROBLEMS + problem]);
    expect(parametersOf('Payment', answer).id).not.toBe(given.challenge.id);
    expect(await typesOf(given.challenge.id)).toEqual(['ChallengeIssued']);
  });

  /** Returns a credential whose base64url has bits after the last byte. */
  function lax(value: object): string {
    const text = [JSON.stringify(value), `${JSON.stringify(value)} `, `${JSON.stringify(value)}  `].find(
      (each) => Buffer.from(each).length % 3 === 1,
    );
    const encoded = Buffer.from(text ?? '').toString('base64url');
    return `Payment ${encoded.slice(0, -1)}${String.fromCharCode(encoded.charCodeAt(encoded.length - 1) + 1)}`;
  }

  test('one for another body or URL; it stays valid for its own request', async () => {
    const { challenge, preimage } = given;
    const other = await ask(coin('A banknote'), payment(challenge, preimage));
    const elsewhere = await world.send('POST', `${PATH}?a=b`, { body: coin(), headers: payment(challenge, preimage) });
    for (const { status, body } of [other, elsewhere])
      expect([status, body.type, body.amount_sats]).toEqual([402, `${PROBLEMS}invalid-challenge`, 92]);
    expect((await ask(coin(), payment(challenge, preimage))).status).toBe(200);
  });

  test('one that was used and whose saved response has been removed, or one that has expired', async () => {
    const { challenge, preimage } = await paid();
    expect((await ask(coin(), payment(challenge, preimage))).status).toBe(200);
    // Only now: both name one payment, which is credited to the first challenge that claims it.
    const old = await expired(challenge.id);
    await world.getService(pg.Pool).query('delete from gateway.answers');
    const again = await ask(coin(), payment(challenge, preimage));
    expect([again.status, again.body.type]).toEqual([402, `${PROBLEMS}invalid-challenge`]);
    const late = await ask(coin(), withProof(`L402 ${old}:${preimage}`));
    expect([late.status, late.body.type]).toEqual([402, `${PROBLEMS}payment-expired`]);
  });

  /** Issues a copy of a challenge, with another id and an expiry in the past. */
  async function expired(id: string): Promise<string> {
    const [issued] = await factsOf(id);
    const [bytes, past] = [randomBytes(32), '2026-01-01T00:00:00.000Z'];
    const older = { id: bytes.toString('base64url'), expiresAt: past, usableUntil: past, at: past };
    const data = { ...(issued?.data as ChallengeIssued['data']), ...older };
    const stream = bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    await world.getService(Streams).challenges.run(stream, { type: 'IssueChallenge', data }, TEST_CAUSE);
    return older.id;
  }
});

describe('a payer', () => {
  test('of a video reads it with the proof or the signed URL, but not with another proof', async () => {
    const [{ challenge, preimage }, other] = [await paid(VIDEO, '/v1/videos'), await paid()];
    const headers = payment(challenge, preimage);
    const made = await world.send('POST', '/v1/videos', { body: VIDEO, headers });
    expect([made.status, made.headers.has('payment-receipt')]).toEqual([202, true]);
    const { id, status_url } = made.body;
    await world.waitUntil(async () => (await fetch(status_url)).status === 200);
    const seen = await world.send('GET', `/v1/videos/${id}`, { headers });
    expect([seen.status, seen.body.status]).toEqual([200, 'completed']);
    const file = await world.send('GET', `/v1/videos/${id}/content`, { headers });
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    for (const shown of [payment(other.challenge, other.preimage), payment(challenge, other.preimage), {}])
      for (const path of [`/v1/videos/${id}`, `/v1/videos/${id}/content`])
        expect([401, 404]).toContain((await world.send('GET', path, { headers: shown })).status);
    expect((await world.send('GET', '/v1/videos', { headers })).status).toBe(401);
    const again = await world.send('POST', '/v1/videos', { body: VIDEO, headers });
    expect([again.status, again.body.id]).toEqual([202, id]);
    expect((await typesOf(challenge.id)).slice(2)).toEqual(['FundsHeld', 'HoldKept', 'HoldSettled']);
  });

  test('can repeat a failing request with the same proof until it has failed three times', async () => {
    const body = { ...VIDEO, prompt: '[[sandbox fault=policy]] A harbour' };
    const { challenge, preimage } = await paid(body, '/v1/videos');
    const headers = payment(challenge, preimage);
    const tried = new Set<string>();
    for (let i = 0; i < 3; i++) {
      const made = await world.send('POST', '/v1/videos', { body, headers });
      expect([made.status, made.headers.has('idempotent-replayed')]).toEqual([202, false]);
      tried.add(made.body.id);
      await world.waitUntil(
        async () => (await typesOf(challenge.id)).filter((type) => type === 'HoldReleased').length > i,
      );
    }
    expect(tried.size).toBe(3);
    const { status, body: refused, headers: sent } = await world.send('POST', '/v1/videos', { body, headers });
    expect([status, refused.error.type, sent.has('www-authenticate')]).toEqual([403, 'payment_exhausted', false]);
    const { data } = (await world.send('GET', '/v1/payments/charge', { headers })).body;
    expect(data).toMatchObject({ state: 'exhausted', charged_usd: 0, left_usd: data.price_usd });
  });

  test('reads the state of the payment with the proof, but not with the id alone', async () => {
    const { challenge, preimage, token } = await paid();
    const charge = async (headers: Record<string, string>) => world.send('GET', '/v1/payments/charge', { headers });
    const l402 = withProof(`L402 ${token}:${preimage}`);
    const before = (await charge(l402)).body.data;
    expect(before).toMatchObject({
      challenge_id: challenge.id,
      state: 'paid',
      amount_sats: 92,
      charged_usd: 0,
      paid_at: null,
    });
    await ask(coin(), l402);
    const after = (await charge(payment(challenge, preimage))).body.data;
    expect(after).toMatchObject({ state: 'used', price_usd: 0.092, charged_usd: 0.092, left_usd: 0, model: BANANA });
    const none = '0'.repeat(64);
    for (const headers of [
      {},
      withProof(`L402 ${challenge.id}:${none}`),
      withProof(`L402 ${challenge.id}`),
      payment(challenge, none),
    ])
      expect([(await charge(headers)).status, headers]).toEqual([401, headers]);
  });

  test('pays the quoted price, even if the price has changed since', async () => {
    const { challenge, preimage } = await paid();
    const catalogues = world.getService(CatalogueService);
    const { current } = catalogues;
    const dearer = current.priceList.lines.map((line) => ({
      ...line,
      prices: line.prices.map((each) => ({ ...each, price: twice(each.price) })),
    }));
    await catalogues.replace(current.withPriceList({ version: 'dearer', lines: dearer }));
    const fresh = await ask();
    const answer = await ask(coin(), payment(challenge, preimage));
    await catalogues.replace(current);
    expect([fresh.body.amount_sats, answer.status, answer.body.cost]).toEqual([184, 200, 0.092]);
    expect(listCharges(await factsOf(challenge.id))).toMatchObject([
      { price: '92000000000', priceList: current.priceList.version },
    ]);
  });

  const twice = (price = '0') => (BigInt(price) * 2n).toString();
});

test('replays a streamed file byte for byte, with the same receipt', async () => {
  const path = '/v1/data/api/maps/solar/rgb-image';
  const { example } = (await world.get('/v1/data/endpoints')).body.data.find(
    (each: { path: string }) => each.path === path,
  );
  const url = `${world.api}${path}?${new URLSearchParams(example)}`;
  const first = await fetch402(url, { method: 'GET' }, { wallet: wallet as never });
  const bytes = Buffer.from(await first.arrayBuffer());
  const credentials = first.payment?.credentials as never;
  const again = await fetch402(url, { method: 'GET' }, { wallet: wallet as never, credentials });
  expect([again.status, Buffer.from(await again.arrayBuffer()).equals(bytes)]).toEqual([200, true]);
  for (const name of ['content-type', 'payment-receipt', 'x-cost-usd'])
    expect([name, again.headers.get(name)]).toEqual([name, first.headers.get(name) ?? 'nothing']);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
});

describe('a gateway', () => {
  /** The status of a request that arrives through a proxy on this host. */
  const from = async (api: string, forwarded: string, headers = {}) => {
    const answer = await ask(coin(), { 'x-forwarded-for': forwarded, ...headers }, api);
    return answer.status;
  };

  test('counts unpaid requests by the address that trusted proxies report, and for IPv6 by network', async () => {
    const api = await world.addGateway({ challengesPerMinute: 1, trustedProxies: ['127.0.0.0/8', '192.0.2.7'] });
    const inTurn = async (...all: string[]) => {
      const statuses: number[] = [];
      for (const forwarded of all) statuses.push(await from(api, forwarded));
      return statuses;
    };
    expect(await inTurn('203.0.113.1', '203.0.113.1', '203.0.113.2')).toEqual([402, 429, 402]);
    expect(await inTurn('198.51.100.1, 203.0.113.3', '198.51.100.2, 203.0.113.3', '203.0.113.3')).toEqual([
      402, 429, 429,
    ]);
    expect(await inTurn('203.0.113.4, 192.0.2.7', '203.0.113.4', '1.1.1.1, 203.0.113.4, 127.0.0.9')).toEqual([
      402, 429, 429,
    ]);
    expect(await inTurn('2001:db8::1', '2001:db8::2:1', '2001:db8:0:0:ffff::', '2001:db8:0:1::')).toEqual([
      402, 429, 429, 402,
    ]);
    expect(await inTurn('x', 'y', 'z')).toEqual([402, 429, 429]);
  });

  test('ignores addresses from untrusted proxies, and does not limit requests that a proof pays for', async () => {
    const api = await world.addGateway({ challengesPerMinute: 2 });
    const asked = ['203.0.113.5', '203.0.113.6', '203.0.113.7'].map((each) => from(api, each));
    expect((await Promise.all(asked)).filter((status) => status === 429)).not.toHaveLength(0);
    const { status, headers, body } = await ask(coin(), {}, api);
    expect([status, body.error.type, headers.has('www-authenticate')]).toEqual([429, 'rate_limit_error', false]);
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60);
    const { challenge, preimage } = await paid();
    expect((await ask(coin(), payment(challenge, preimage), api)).status).toBe(200);
    expect((await ask(coin('A note'), payment(challenge, preimage), api)).status).toBe(429);
  });

  test('limits the challenges for all callers together', async () => {
    const api = await world.addGateway({ challengesPerMinuteInAll: 1, trustedProxies: ['127.0.0.1'] });
    const { status, headers } = await ask(coin(), { 'x-forwarded-for': '203.0.113.8' }, api);
    expect([status, headers.has('retry-after')]).toEqual([429, true]);
  });

  test('issues no challenge while the counters are unavailable', async () => {
    const rename = (from: string, to: string) =>
      world.getService(pg.Pool).query(`alter table limits.${from} rename to ${to}`);
    await rename('counted', 'gone');
    const { status, headers } = await ask();
    await rename('gone', 'counted');
    expect([status, headers.has('www-authenticate')]).toEqual([503, false]);
  });

  test('without Lightning requires a key, but still accepts proofs', async () => {
    const api = await world.addGateway({ lndUrl: undefined, btcpayUrl: undefined } as never);
    const { status, headers } = await ask(coin(), {}, api);
    expect([status, headers.has('www-authenticate')]).toEqual([401, false]);
    const { challenge, preimage } = await paid();
    expect((await ask(coin(), payment(challenge, preimage), api)).status).toBe(200);
  });

  test('whose Lightning node is unavailable responds with 503 and the time to wait', async () => {
    const api = await world.addGateway({ lndUrl: 'http://127.0.0.1:9' });
    const { status, headers, body } = await ask(coin(), {}, api);
    expect([status, headers.get('retry-after'), body.message]).toEqual([
      503,
      '5',
      'Payments are temporarily unavailable',
    ]);
  });

  test('limits the disk space of files of anonymous callers, and accepts a small file after a rejection', async () => {
    const api = await world.addGateway({ uploadsMaxBytes: 1024 * 1024 });
    const edit = (bytes: Uint8Array) => {
      const body = new FormData();
      body.set('model', BANANA);
      body.set('prompt', 'At night');
      body.set('image', new Blob([new Uint8Array(bytes)]), 'pixel.png');
      return world.send('POST', '/v1/images/edits', { body, api });
    };
    expect((await edit(PIXEL)).status).toBe(402);
    expect((await edit(new Uint8Array(150_000))).status).toBe(503);
    expect((await edit(PIXEL)).status).toBe(402);
  });
});

test('leaves no drift in the ledger after all tests above', async () => {
  const lines: string[] = [];
  await verify(world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
  expect(lines).toContainEqual(expect.stringMatching(/^[1-9]\d* challenges paid, /));
});
