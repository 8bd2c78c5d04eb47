/** Private chats through the gateway, with an enclave whose responses a test can replace. */
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Client, request } from 'undici';
import { Clock } from '#application';
import { verify } from '#audit';
import { generateKeys, sealRequest } from '#ehbp';
import { extendTimeouts, isEstimated, listCharges, shiftClock, sumUsage, type TestAccount, TestWorld } from '#testing';
import {
  createChatEvent,
  type PrivateResponse,
  respondWithEvents,
  sendPrivateRequest,
  TestEnclave,
  USAGE,
} from '../../../../libs/testing/src/servers/test-enclave.ts';

const CHEAP = 'private/gpt-oss-120b';
const DEAR = 'private/kimi-k3';
const PER_INPUT = 0.79125e-6;
const PER_OUTPUT = 1.31875e-6;
const CREDENTIAL = 'enclave-credential-0123456789';
const SECRET = 'xylophone-planted-word';
const QUESTION = { model: 'gpt-oss-120b', messages: [{ role: 'user', content: SECRET }] };
const DONE = 'data: [DONE]\n\n';
/** No other timeout lasts as long. */
const DRAIN_MS = 119_000;

let enclave: TestEnclave;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  enclave = await TestEnclave.open();
  const url = await enclave.listen();
  world = await TestWorld.open({
    TINFOIL_BASE_URL: url,
    TINFOIL_API_KEY: CREDENTIAL,
    DISCONNECT_DRAIN_MS: String(DRAIN_MS),
  });
  account = await world.createAccount(105);
});
afterAll(async () => {
  await world.close();
  await enclave.close();
});
beforeEach(() => {
  enclave.received.length = 0;
  enclave.abandonedCount = 0;
  enclave.handler = respondWithEvents(
    [createChatEvent('one'), createChatEvent(' two'), DONE],
    'prompt=74,completion=3,total=77',
  );
});

interface Asked {
  readonly by?: TestAccount;
  readonly model?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly publicKey?: Uint8Array;
  readonly signal?: AbortSignal;
}

function ask({
  by = account,
  model = CHEAP,
  body = QUESTION,
  headers = {},
  ...more
}: Asked = {}): Promise<PrivateResponse> {
  const all = { authorization: `Bearer ${by.apiKey}`, 'x-private-model': model, ...headers };
  const url = `${world.api}/private/v1/chat/completions`;
  return sendPrivateRequest({ url, publicKey: enclave.keys.publicKey, headers: all, body, ...more });
}

/** Runs `act` and returns its result, the events that it appended to the account, and the charges in them. */
async function bookedBy<T>(act: () => Promise<T>, by = account) {
  const before = (await world.listEvents(by)).length;
  const result = await act();
  const facts = (await world.listEvents(by)).slice(before);
  return { result, facts, charges: listCharges(facts.filter(({ type }) => type === 'HoldSettled')) };
}

/** Creates a key of the account with a spending limit. */
async function capped(usd: number, of = account): Promise<TestAccount> {
  const headers = { 'x-credit-id': of.creditId };
  const { body } = await world.send('POST', '/keys', { body: { name: `${usd} USD`, usage_limit_usd: usd }, headers });
  return { ...of, apiKey: body.data.api_key };
}

async function settled(by: TestAccount, count: number): Promise<void> {
  await world.waitUntil(async () => listCharges(await world.listEvents(by)).length >= count);
}

test('relays a chat encrypted in both directions, and charges the usage that the enclave reports', async () => {
  const { result, charges } = await bookedBy(() => ask({ headers: { 'x-query-source': 'ui', cookie: 'a=b' } }));
  expect([result.status, result.isComplete, result.text]).toEqual([
    200,
    true,
    createChatEvent('one') + createChatEvent(' two') + DONE,
  ]);
  const cost = 74 * PER_INPUT + 3 * PER_OUTPUT;
  expect(result.trailers[USAGE]).toBe('prompt=74,completion=3,total=77');
  expect(result.trailers['x-cost-usd']).toBe('0.0000625087500'.replace(/0+$/, ''));
  expect(Number(result.trailers['x-cost-usd'])).toBeCloseTo(cost, 11);
  expect(charges.map((charge) => [sumUsage(charge), isEstimated(charge)])).toEqual([
    [expect.objectContaining({ input: 74, output: 3 }), false],
  ]);
  const [{ url, headers }] = enclave.received as [(typeof enclave.received)[0]];
  expect(url).toBe('/gpt-oss-120b/v1/chat/completions');
  expect(headers).toMatchObject({ authorization: `Bearer ${CREDENTIAL}`, 'x-tinfoil-request-usage-metrics': 'true' });
  expect(Object.keys(headers).toSorted()).toEqual(
    [
      'accept',
      'authorization',
      'connection',
      'content-type',
      'ehbp-encapsulated-key',
      'host',
      'transfer-encoding',
    ].concat(['user-agent', 'x-tinfoil-request-usage-metrics']),
  );
  const row = (await world.get('/queries/history?page_count=1', account)).body.data[0];
  expect(row).toMatchObject({ model: CHEAP, query_type: 'chat_completion', query_source: 'ui', input_count: 74 });
  expect(row.price_in_usd).toBe(Number(result.trailers['x-cost-usd']));
});

test('returns the usage of a non-streaming response in a header, and its price in a trailer', async () => {
  enclave.handler = ({ sealer, response }) => {
    const head = { 'content-type': 'application/json', 'ehbp-response-nonce': sealer.nonce };
    response.writeHead(200, { ...head, [USAGE]: 'prompt=74,completion=3,total=77' });
    response.end(
      sealer.seal(Buffer.from(JSON.stringify({ choices: [{ message: { content: 'one two' } }], id: 'x'.repeat(200) }))),
    );
  };
  const { headers, trailers, isComplete: isWhole } = await ask({ headers: { accept: 'application/json' } });
  expect([isWhole, headers['content-type'], headers[USAGE], trailers['x-cost-usd']]).toEqual([
    true,
    'application/json',
    'prompt=74,completion=3,total=77',
    '0.00006250875',
  ]);
});

describe('the relay of private chats', () => {
  test('returns 422 for a request that is encrypted for the key of another enclave, and releases the hold', async () => {
    const other = await generateKeys();
    const { result, facts } = await bookedBy(() => ask({ publicKey: other.publicKey }));
    expect([result.status, facts.map(({ type }) => type)]).toEqual([422, ['FundsHeld', 'HoldReleased']]);
  });

  test('calls the enclave of the named model, and charges the price of this model', async () => {
    const { charges } = await bookedBy(() => ask({ model: DEAR }));
    expect(enclave.received.map(({ url }) => url)).toEqual(['/kimi-k3/v1/chat/completions']);
    expect(charges[0]?.items[0]).toMatchObject({ of: DEAR });
  });

  test('ignores output limits in unencrypted headers, and charges all that is generated', async () => {
    const words = Array.from({ length: 3_000 }, () => createChatEvent(' word'));
    enclave.handler = respondWithEvents([...words, DONE], 'prompt=74,completion=3000,total=3074');
    const headers = { 'x-private-max-tokens': '10', 'x-max-tokens': '10', 'max-tokens': '10' };
    const { result, charges } = await bookedBy(() => ask({ headers }));
    expect([result.isComplete, sumUsage(charges[0] as never).output]).toEqual([true, 3_000]);
  });

  test('states the price of what is generated until a stop, once the speed of the enclave has been measured', async () => {
    const words = Array.from({ length: 200 }, () => createChatEvent(' word'));
    enclave.handler = respondWithEvents([...words, DONE], 'prompt=74,completion=200,total=274');
    const poor = await world.createAccount(0.2);
    const { facts } = await bookedBy(async () => {
      for (let count = 0; count < 2; count++) await ask({ by: poor, model: 'private/gemma4-31b' });
    }, poor);
    const holds = facts.flatMap(({ type, data }) => (type === 'FundsHeld' ? [data] : []));
    expect(holds.map(({ stopPrice }) => stopPrice)).toEqual([undefined, expect.stringMatching(/^[1-9]/)]);
  });

  test('rejects a non-streaming request before calling the enclave if the longest completion is unaffordable', async () => {
    const poor = await capped(1.3);
    const { status } = await ask({ by: poor, model: DEAR, headers: { accept: 'application/json' } });
    expect([status, enclave.received]).toEqual([402, []]);
  });

  test('rejects the second request of a client that announced a stream but requested a non-streaming response', async () => {
    const liar = await world.createAccount(10);
    enclave.handler = ({ sealer, response }) => {
      response.writeHead(200, { 'content-type': 'application/json', 'ehbp-response-nonce': sealer.nonce });
      response.end(sealer.seal(Buffer.from(JSON.stringify({ choices: [], id: 'x'.repeat(4_000) }))));
    };
    const poor = await capped(1.3, liar);
    const ends = [await ask({ by: poor, model: DEAR }), await ask({ by: poor, model: DEAR })];
    expect(ends.map(({ status }) => status)).toEqual([200, 402]);
  });

  test('completes none of several concurrent requests that wrongly announce a stream and exceed the limit of the key', async () => {
    const liar = await capped(0.02, await world.createAccount(10));
    enclave.handler = ({ sealer, response }) => {
      response.writeHead(200, { 'content-type': 'application/json', 'ehbp-response-nonce': sealer.nonce });
      response.end(sealer.seal(Buffer.from(JSON.stringify({ choices: [], id: 'x'.repeat(4_000) }))));
    };
    const all = await Promise.all(
      Array.from({ length: 4 }, () => ask({ by: liar, model: DEAR }).catch(() => undefined)),
    );
    expect(all.filter((each) => each?.status === 200 && each.isComplete)).toEqual([]);
  });

  test('limits overstated usage to what the bytes of the response allow, within the hold', async () => {
    enclave.handler = respondWithEvents(
      [createChatEvent('one'), DONE],
      'prompt=900000,completion=900000,total=1800000',
    );
    const { facts, charges } = await bookedBy(() => ask());
    const [charge] = charges;
    const { input = 0, output = 0 } = sumUsage(charge as never);
    expect([input < 1_000, output < 200, isEstimated(charge as never)]).toEqual([true, true, true]);
    const [ended] = facts.filter(({ type }) => type === 'HoldSettled');
    expect(ended?.data).toMatchObject({ charged: charge?.price });
  });

  test('charges overstated usage up to the limit of the key, without an overrun', async () => {
    const poor = await capped(0.011);
    const words = Array.from({ length: 20 }, () => createChatEvent(' word'));
    enclave.handler = respondWithEvents([...words, DONE], 'prompt=74,completion=1500,total=1574');
    const { facts } = await bookedBy(() => ask({ by: poor, model: DEAR }), poor);
    const [{ charged = '', charge } = {}] = facts.flatMap(({ type, data }) => (type === 'HoldSettled' ? [data] : []));
    expect([charged, isEstimated(charge as never)]).toEqual([charge?.price, true]);
    expect(Number(charged)).toBeLessThanOrEqual(0.011e12);
  });

  test('estimates understated usage', async () => {
    const words = Array.from({ length: 200 }, () => createChatEvent(' word'));
    enclave.handler = respondWithEvents([...words, DONE], 'prompt=1,completion=1,total=2');
    const { charges } = await bookedBy(() => ask());
    const { input = 0, output = 0 } = sumUsage(charges[0] as never);
    expect([input > 20, output >= 200, isEstimated(charges[0] as never)]).toEqual([true, true, true]);
  });

  test('estimates usage that is not reported, and marks the charge as an estimate', async () => {
    enclave.handler = respondWithEvents([createChatEvent('one'), createChatEvent('two'), DONE]);
    const { charges } = await bookedBy(() => ask());
    expect(isEstimated(charges[0] as never)).toBe(true);
    expect(sumUsage(charges[0] as never).output).toBeGreaterThanOrEqual(3);
  });

  test('treats an invalid usage report as a missing one', async () => {
    enclave.handler = respondWithEvents([createChatEvent('one'), DONE], 'prompt=-1,completion=1e9,total=x');
    const { result, charges } = await bookedBy(() => ask());
    expect([isEstimated(charges[0] as never), result.trailers[USAGE]]).toEqual([true, undefined]);
  });

  test('aborts the request to the enclave and the response when the money is used up', async () => {
    const poor = await capped(0.01);
    enclave.handler = async ({ sealer, response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'ehbp-response-nonce': sealer.nonce });
      for (let i = 0; i < 20_000 && !response.destroyed; i++) {
        response.write(sealer.seal(Buffer.from(createChatEvent(' word'))));
        if (i % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    };
    const { result, facts, charges } = await bookedBy(
      () => ask({ by: poor, body: { ...QUESTION, model: 'kimi-k3' }, model: DEAR }),
      poor,
    );
    expect([result.isComplete, charges.length, isEstimated(charges[0] as never)]).toEqual([false, 1, true]);
    const [ended] = facts.filter(({ type }) => type === 'HoldSettled');
    expect(ended?.data).toMatchObject({ charged: charges[0]?.price });
    await world.waitUntil(async () => enclave.abandonedCount === 1);
  });

  test('aborts the request to the enclave when the client disconnects, and charges an estimate', async () => {
    const leaves = new AbortController();
    enclave.handler = async ({ sealer, response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'ehbp-response-nonce': sealer.nonce });
      response.write(sealer.seal(Buffer.from(createChatEvent('one'))));
      setTimeout(() => leaves.abort(), 20);
    };
    const before = listCharges(await world.listEvents(account)).length;
    await ask({ signal: leaves.signal }).catch(() => {});
    await settled(account, before + 1);
    await world.waitUntil(async () => enclave.abandonedCount === 1);
    const last = listCharges(await world.listEvents(account)).at(-1);
    expect(isEstimated(last as never)).toBe(true);
  });

  const head = { 'content-type': 'text/event-stream', trailer: USAGE };
  const report = 'prompt=74,completion=3,total=77';
  test.each<
    [string, (leave: () => void) => TestEnclave['handler'], { readonly usage: object; readonly estimated: boolean }]
  >([
    [
      'after the last event and before the usage report',
      (leave) =>
        ({ sealer, response }) => {
          response.writeHead(200, { ...head, 'ehbp-response-nonce': sealer.nonce });
          for (const event of [createChatEvent('one'), createChatEvent(' two')])
            response.write(sealer.seal(Buffer.from(event)));
          response.write(sealer.seal(Buffer.from(DONE)), leave);
          setTimeout(() => response.addTrailers({ [USAGE]: report }), 60);
          setTimeout(() => response.end(), 60);
        },
      { usage: { input: 74, output: 3 }, estimated: false },
    ],
    [
      'before a non-streaming response',
      (leave) =>
        ({ sealer, response }) => {
          leave();
          const whole = () =>
            response
              .writeHead(200, { 'ehbp-response-nonce': sealer.nonce, [USAGE]: report })
              .end(sealer.seal(Buffer.alloc(400, 'x')));
          setTimeout(whole, 60);
        },
      { usage: { input: 74, output: 3 }, estimated: false },
    ],
    [
      'before a response that does not arrive in time',
      (leave) => () => leave(),
      { usage: { input: 36 }, estimated: true },
    ],
  ])('charges a client that disconnects %s', async (_, answering, item) => {
    const leaves = new AbortController();
    enclave.handler = answering(() => setTimeout(() => leaves.abort(), 20));
    const before = listCharges(await world.listEvents(account)).length;
    const drain = extendTimeouts(DRAIN_MS);
    await ask({ signal: leaves.signal }).catch(() => {});
    if (item.estimated) {
      await drain.started;
      drain.end();
    }
    await settled(account, before + 1);
    drain.end();
    expect(listCharges(await world.listEvents(account)).at(-1)?.items[0]).toMatchObject(item);
  });
});

test('an encrypted 401 concerns the credential of the operator, so the client gets 503', async () => {
  enclave.handler = ({ sealer, response }) => {
    response.writeHead(401, { 'ehbp-response-nonce': sealer.nonce }).end(sealer.seal(Buffer.from('{}')));
  };
  const { result, charges } = await bookedBy(() => ask());
  expect([result.status, result.headers['retry-after'], charges]).toEqual([503, '30', []]);
});

describe('the relay of private chats to a faulty enclave', () => {
  // After a response to an invalid credential, the provider rests for a few seconds.
  beforeEach(() => {
    shiftClock(world.getService(Clock), 6_000);
  });

  const plain = (status: number, headers: Record<string, string> = {}) =>
    ((opened) => {
      opened.response.writeHead(status, { 'content-type': 'application/json', ...headers });
      opened.response.end(JSON.stringify({ error: { message: `cannot parse ${opened.body}` } }));
    }) as TestEnclave['handler'];

  test.each([
    ['responds in plain text', 200, 502],
    ['rejects in plain text', 400, 400],
    ['does not know the path', 404, 502],
    ['rejects the credential', 401, 503],
    ['fails', 500, 502],
    ['limits the rate', 429, 429],
    ['is unavailable', 503, 503],
  ])(
    'handles an enclave that %s (%i): returns %i without its text, and charges nothing',
    async (_, status, answered) => {
      enclave.handler = plain(status);
      const { result, facts, charges } = await bookedBy(() => ask());
      expect([result.status, charges]).toEqual([answered, []]);
      expect(result.text + JSON.stringify(facts.map(({ data }) => data))).not.toContain(SECRET);
      expect(facts.map(({ type }) => type).slice(0, 2)).toEqual(['FundsHeld', 'HoldReleased']);
      expect(enclave.received).toHaveLength(1);
    },
  );

  test('relays an encrypted error response unchanged, and charges nothing', async () => {
    enclave.handler = ({ sealer, response }) => {
      response.writeHead(400, { 'content-type': 'application/json', 'ehbp-response-nonce': sealer.nonce });
      response.end(sealer.seal(Buffer.from(`{"error":{"message":"no ${SECRET}"}}`)));
    };
    const { result, charges } = await bookedBy(() => ask());
    expect([result.status, result.text, charges]).toEqual([400, `{"error":{"message":"no ${SECRET}"}}`, []]);
  });

  test('returns a key mismatch as the 422 of the protocol, and charges nothing', async () => {
    const problem = { type: 'urn:ietf:params:ehbp:error:key-config', title: SECRET };
    enclave.handler = ({ response }) => {
      response.writeHead(422, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
    };
    const { result, charges } = await bookedBy(() => ask());
    expect([result.status, result.headers['content-type'], JSON.parse(result.text).type, charges]).toEqual([
      422,
      'application/problem+json',
      problem.type,
      [],
    ]);
    expect(result.text).not.toContain(SECRET);
  });

  test.each<[string, TestEnclave['handler']]>([
    [
      'closes the connection',
      ({ sealer, response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'ehbp-response-nonce': sealer.nonce });
        response.write(sealer.seal(Buffer.from(createChatEvent('one'))), () => response.destroy());
      },
    ],
    [
      'ends in the middle of a frame',
      ({ sealer, response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'ehbp-response-nonce': sealer.nonce });
        response.end(sealer.seal(Buffer.from(createChatEvent('one'))).subarray(0, -1));
      },
    ],
    [
      'sends a frame of 4 GiB',
      ({ sealer, response }) => {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'ehbp-response-nonce': sealer.nonce });
        response.write(sealer.seal(Buffer.from(createChatEvent('one'))));
        setTimeout(() => response.end(Buffer.alloc(64, 0xff)), 20);
      },
    ],
  ])('handles an enclave that %s: closes the connection to the client, and charges once', async (_, answer) => {
    enclave.handler = answer;
    const before = listCharges(await world.listEvents(account)).length;
    const answered = await ask().then(
      ({ isComplete: isWhole }) => isWhole,
      () => false,
    );
    expect(answered).toBe(false);
    await settled(account, before + 1);
    expect(listCharges(await world.listEvents(account))).toHaveLength(before + 1);
  });

  test('charges one output token if the enclave announces a frame and sends none of its bytes', async () => {
    enclave.handler = ({ sealer, response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', 'ehbp-response-nonce': sealer.nonce });
      response.write(Buffer.from([1, 0, 0, 0]), () => response.destroy());
    };
    const before = listCharges(await world.listEvents(account)).length;
    await ask().catch(() => {});
    await settled(account, before + 1);
    expect(sumUsage(listCharges(await world.listEvents(account)).at(-1) as never).output).toBe(1);
  });

  test.each([200, 302, 399, 999])('returns 502 for an invalid response with status %i', async (status) => {
    enclave.handler = ({ sealer, response }) => {
      const head = { 'ehbp-response-nonce': sealer.nonce, location: `http://a/${SECRET}`, 'x-request-id': SECRET };
      response.writeHead(status, status === 200 ? { 'x-request-id': SECRET } : head).end(SECRET);
    };
    const { result, facts } = await bookedBy(() => ask());
    expect([result.status, result.text.includes(SECRET)]).toEqual([502, false]);
    expect(JSON.stringify(facts.map(({ data }) => data))).not.toContain(SECRET);
  });

  test('does not store the request id of the enclave in an event', async () => {
    enclave.handler = (opened) => {
      opened.response.setHeader('x-request-id', SECRET);
      return respondWithEvents([createChatEvent('one'), DONE], 'prompt=74,completion=2,total=76')(opened);
    };
    const { facts, charges } = await bookedBy(() => ask());
    expect(charges).toHaveLength(1);
    expect(JSON.stringify(facts.map(({ data }) => data))).not.toContain(SECRET);
  });
});

test('serves an HTTP/1.0 client, which cannot receive trailers', async () => {
  const sealed = await sealRequest(enclave.keys.publicKey, Buffer.from(JSON.stringify(QUESTION)));
  const body = Buffer.concat(sealed.frames);
  const { hostname, port } = new URL(world.api);
  const socket = connect(Number(port), hostname);
  socket.write(`POST /private/v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${account.apiKey}\r\n`);
  socket.write(`x-private-model: ${CHEAP}\r\nehbp-encapsulated-key: ${sealed.encapsulatedKey}\r\n`);
  socket.write(`content-length: ${body.length}\r\n\r\n`);
  socket.write(body);
  const answer = Buffer.concat(await socket.toArray()).toString('latin1');
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(answer.split('\r\n\r\n').slice(1).join('').length).toBeGreaterThan(300);
});

describe('the check of a private chat before money is held', () => {
  const post = async (headers: Record<string, string>, body: string | null) => {
    const all = { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json', ...headers };
    const { statusCode, body: answer } = await request(`${world.api}/private/v1/chat/completions`, {
      method: 'POST',
      headers: all,
      body,
    });
    const text = await answer.text();
    return [statusCode, JSON.parse(text).error?.param ?? null];
  };
  const key = 'a'.repeat(64);

  test.each<[string, Record<string, string>, string | null, number, string | null]>([
    ['no model', { 'ehbp-encapsulated-key': key }, 'x', 400, 'X-Private-Model'],
    ['an unknown model', { 'x-private-model': 'private/none', 'ehbp-encapsulated-key': key }, 'x', 404, 'model'],
    [
      'a model that is not private',
      { 'x-private-model': 'openai/gpt-5-mini', 'ehbp-encapsulated-key': key },
      'x',
      404,
      'model',
    ],
    ['no encapsulated key', { 'x-private-model': CHEAP }, 'x', 400, 'Ehbp-Encapsulated-Key'],
    [
      'an encapsulated key in capitals',
      { 'x-private-model': CHEAP, 'ehbp-encapsulated-key': 'A'.repeat(64) },
      'x',
      400,
      'Ehbp-Encapsulated-Key',
    ],
    [
      'an Idempotency-Key',
      { 'x-private-model': CHEAP, 'ehbp-encapsulated-key': key, 'idempotency-key': '1' },
      'x',
      400,
      'Idempotency-Key',
    ],
    [
      'a compressed body',
      { 'x-private-model': CHEAP, 'ehbp-encapsulated-key': key, 'content-encoding': 'gzip' },
      'x',
      415,
      null,
    ],
    ['no body', { 'x-private-model': CHEAP, 'ehbp-encapsulated-key': key }, null, 400, null],
    [
      'an unknown API key',
      { 'x-private-model': CHEAP, 'ehbp-encapsulated-key': key, authorization: 'Bearer none' },
      'x',
      401,
      null,
    ],
  ])('rejects a request with %s', async (_, headers, body, status, param) => {
    const { result, facts } = await bookedBy(() => post(headers, body));
    expect([result, facts, enclave.received]).toEqual([[status, param], [], []]);
  });

  test('returns 402 without money, and sends nothing to the enclave', async () => {
    const { status, text } = await ask({ by: await world.createAccount(0) });
    expect([status, JSON.parse(text).message]).toEqual([402, expect.stringContaining('Insufficient balance')]);
    expect(enclave.received).toEqual([]);
  });
});

test('rejects a body that exceeds the size limit or the available money, without a charge', async () => {
  const sealed = await sealRequest(enclave.keys.publicKey, Buffer.alloc(26 * 1024 * 1024, 0x20));
  const send = async (by: TestAccount) => {
    const answer = await request(`${world.api}/private/v1/chat/completions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${by.apiKey}`,
        'x-private-model': CHEAP,
        accept: 'text/event-stream',
        'ehbp-encapsulated-key': sealed.encapsulatedKey,
      },
      body: Readable.from(sealed.frames),
    }).catch(() => undefined);
    await answer?.body.dump().catch(() => {});
    return answer?.statusCode;
  };
  const { result, charges } = await bookedBy(() => send(account));
  expect([[413, undefined].includes(result), charges]).toEqual([true, []]);
  const poor = await capped(0.02, await world.createAccount(1));
  const { result: refused, facts } = await bookedBy(() => send(poor), poor);
  expect([[402, undefined].includes(refused), listCharges(facts)]).toEqual([true, []]);
  await world.waitUntil(async () => (await world.listEvents(poor)).at(-1)?.type === 'HoldReleased');
});

test('serves the next request of a connection after rejecting a request whose body was still being sent', async () => {
  const client = new Client(world.api, { pipelining: 1 });
  const head = { authorization: `Bearer ${account.apiKey}`, 'x-private-model': 'private/none' };
  const refused = await client.request({
    method: 'POST',
    path: '/private/v1/chat/completions',
    body: Buffer.alloc(8 * 1024 * 1024),
    headers: { ...head, 'ehbp-encapsulated-key': 'a'.repeat(64) },
  });
  await refused.body.dump();
  const next = await client.request({ method: 'GET', path: '/health/live' });
  await next.body.dump();
  expect([refused.statusCode, next.statusCode]).toEqual([404, 200]);
  await client.close();
});

test('leaves the ledger at drift 0 after all of these requests', async () => {
  const lines: string[] = [];
  await verify(world.foundation, (line) => lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
});
