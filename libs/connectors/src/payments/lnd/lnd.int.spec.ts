import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { LndBackend } from '#connectors';
import type { CoinTerms } from '#domain';
import { sampleSize } from '../../../../testing/src/sample-cases.ts';
import { createSelfSignedCertificate } from '../../../../testing/src/servers/self-signed.ts';
import { splitLines } from '../lines.ts';

const tooLong = (): never => {
  throw new Error('too long');
};
const MACAROON = '0201036c6e64';
const NOWHERE = 'http://127.0.0.1:1';
const HASH = 'fb'.repeat(32);
const BASE64_HASH = Buffer.from(HASH, 'hex').toString('base64');
const OTHER_BASE64_HASH = Buffer.from('00'.repeat(32), 'hex').toString('base64');
const PAID = {
  reference: HASH,
  id: HASH,
  units: 1_500_000n,
  confirmations: 'final',
  receivedAt: '2026-11-20T12:00:00.000Z',
};
const [bitcoin] = readPayments().coins as readonly [CoinTerms];
const requested = (units = 1n) => ({
  topupId: 't',
  coin: bitcoin,
  kind: 'bolt11' as const,
  confirmations: 0,
  units,
  memo: 'Päivää ☕',
  expirySeconds: 900,
});

/** An invoice in the format of LND. */
const invoice = (more: object = {}) => ({
  memo: 'Päivää ☕',
  r_hash: BASE64_HASH,
  value_msat: '1500000',
  settle_date: '1795176000',
  amt_paid_msat: '1500000',
  state: 'SETTLED',
  ...more,
});

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let answer: Answer;
let asked: { readonly line: string; readonly headers: IncomingMessage['headers']; readonly body: string }[];
let opened: AsyncDisposableStack;

beforeEach(() => {
  asked = [];
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

const handle = async (request: IncomingMessage, response: ServerResponse) => {
  asked.push({ line: `${request.method} ${request.url}`, headers: request.headers, body: await text(request) });
  answer(response, request);
};

/** Starts a server and returns its port. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.defer(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return (server.address() as AddressInfo).port;
}

function connect(url: string, certificates?: readonly string[]): LndBackend {
  const node = new LndBackend({ lndUrl: url, lndMacaroon: MACAROON, lndCertificates: certificates });
  opened.defer(() => node.close());
  return node;
}

async function start(first: Answer): Promise<LndBackend> {
  answer = first;
  return connect(`http://127.0.0.1:${await listen(createServer(handle))}`);
}

const json = (body: unknown, status = 200): Answer => {
  const printed = typeof body === 'string' ? body : JSON.stringify(body);
  return (response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(printed);
};

describe('creating an invoice', () => {
  const MADE = { r_hash: BASE64_HASH, payment_request: 'lnbcrt1', add_index: '1' };

  test('sends 64-bit numbers as strings and the macaroon as a header', async () => {
    const node = await start(json(MADE));
    await node.createPayment(requested(1_500_000n));
    const [{ line, headers, body }] = asked as [(typeof asked)[0]];
    expect([line, headers['grpc-metadata-macaroon']]).toEqual(['POST /v1/invoices', MACAROON]);
    expect(headers['content-type']).toBe('application/json');
    expect(JSON.parse(body)).toEqual({ value_msat: '1500000', memo: 'Päivää ☕', expiry: '900' });
  });

  test.each([
    ['base64', BASE64_HASH],
    ['URL-safe base64', BASE64_HASH.replaceAll('+', '-').replaceAll('/', '_')],
  ])('returns the invoice and its hash in hexadecimal if LND sends %s', async (_, r_hash) => {
    const node = await start(json({ ...MADE, r_hash }));
    expect(await node.createPayment(requested())).toEqual({
      reference: HASH,
      destination: { kind: 'bolt11', value: 'lnbcrt1' },
      paymentHash: HASH,
    });
  });

  test.each<[string, Answer]>([
    ['responds with 404', json({ code: 5, message: 'Not Found' }, 404)],
    ['sends no hash', json({ payment_request: 'lnbcrt1' })],
    ['sends no invoice', json({ r_hash: BASE64_HASH })],
    ['sends null', json('null')],
  ])('fails if the node %s', async (_, first) => {
    const node = await start(first);
    await expect(node.createPayment(requested())).rejects.toMatchObject({
      code: 'upstream_error',
      name: 'UpstreamError',
    });
  });
});

describe('looking up a payment', () => {
  test('sends the hash in hexadecimal, and returns the payment', async () => {
    const node = await start(json(invoice()));
    expect(await node.fetchPayments([HASH])).toEqual([PAID]);
    expect(asked[0]).toMatchObject({
      line: `GET /v1/invoice/${HASH}`,
      headers: { 'grpc-metadata-macaroon': MACAROON },
    });
  });

  test('returns the amount that was actually paid, even if it is higher than requested', async () => {
    const node = await start(json(invoice({ amt_paid_msat: '9007199254740993' })));
    expect(await node.fetchPayments([HASH])).toMatchObject([{ units: 9_007_199_254_740_993n }]);
  });

  test.each(['OPEN', 'CANCELED', 'ACCEPTED', undefined])('finds no payment in the state %p', async (state) => {
    const node = await start(json(invoice({ state, settle_date: '0', amt_paid_msat: '0' })));
    expect(await node.fetchPayments([HASH])).toEqual([]);
  });

  test('returns the payments of several invoices', async () => {
    const other = 'aa'.repeat(32);
    const node = await start((response, request) => {
      const paid = request.url?.endsWith(other) ? { r_hash: Buffer.from(other, 'hex').toString('base64') } : {};
      json(invoice(paid))(response, request);
    });
    const found = await node.fetchPayments([HASH, other]);
    expect(found.map(({ reference }) => reference)).toEqual([HASH, other]);
  });

  test('finds no payment for an unknown invoice', async () => {
    const node = await start(json({ code: 5, message: 'unable to locate invoice', details: [] }, 404));
    expect(await node.fetchPayments([HASH])).toEqual([]);
  });

  test.each([
    ['another hash', OTHER_BASE64_HASH],
    ['no hash', undefined],
  ])('fails for an unpaid invoice with %s, because the requested one may be paid', async (_, r_hash) => {
    const node = await start(json(invoice({ r_hash, state: 'OPEN', settle_date: '0', amt_paid_msat: '0' })));
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test.each([
    ['of another invoice', { r_hash: OTHER_BASE64_HASH }],
    ['without a hash', { r_hash: undefined }],
    ['without an amount', { amt_paid_msat: undefined }],
    ['with an invalid amount', { amt_paid_msat: 'all' }],
    ['with a negative amount', { amt_paid_msat: '-1' }],
    ['with too many digits', { amt_paid_msat: '9'.repeat(200) }],
    ['with a hash that is not a string', { r_hash: { length: 32 } }],
    ['in the year 33658', { settle_date: '999999999999' }],
    ['without a time', { settle_date: undefined }],
    ['with an invalid time', { settle_date: 'today' }],
  ])('fails for a payment %s', async (_, nonsense) => {
    const node = await start(json(invoice(nonsense)));
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });
});

describe('a failing LND node', () => {
  const calls = [
    (node: LndBackend) => node.createPayment(requested()),
    (node: LndBackend) => node.fetchPayments([HASH]),
  ];

  test.each([
    'verification failed: signature mismatch after caveat verification',
    'permission denied',
    'expected 1 macaroon, got 0',
    "cannot get macaroon: root key with id doesn't exist",
  ])('with the message %p rejects the macaroon', async (message) => {
    const node = await start(json({ code: 2, message }, 500));
    for (const call of calls)
      await expect(call(node)).rejects.toMatchObject({ code: 'upstream_unavailable', isCredentialRejected: true });
  });

  test.each([400, 500, 502, 503])('with status %i results in upstream_error', async (status) => {
    const node = await start(json({ code: 2, message: 'no' }, status));
    for (const call of calls) await expect(call(node)).rejects.toMatchObject({ code: 'upstream_error', status });
  });

  test.each<[string, Answer]>([
    ['sends an HTML page', json('<html>wallet locked</html>')],
    ['sends an empty response', json('')],
    ['sends incomplete JSON', json(JSON.stringify(invoice()).slice(0, 40))],
    [
      'interrupts its response',
      (response) => {
        response.writeHead(200, { 'content-length': '1000' }).flushHeaders();
        response.write('{"r_hash":', () => response.destroy());
      },
    ],
  ])('that %s results in upstream_error', async (_, first) => {
    const node = await start(first);
    for (const call of calls) await expect(call(node)).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('results in upstream_unavailable if it closes the connection or is unreachable', async () => {
    const hangsUp = await start((response) => void response.destroy());
    for (const node of [hangsUp, connect(NOWHERE)]) {
      for (const call of calls) await expect(call(node)).rejects.toMatchObject({ code: 'upstream_unavailable' });
    }
  });
});

describe('the certificate of the node', () => {
  async function overTls(trusted: 'its own' | 'another' | undefined): Promise<LndBackend> {
    const own = await createSelfSignedCertificate();
    const certificate = trusted === 'another' ? (await createSelfSignedCertificate()).cert : own.cert;
    answer = json(invoice());
    const port = await listen(createTlsServer(own, handle) as unknown as Server);
    return connect(`https://127.0.0.1:${port}`, trusted && [certificate]);
  }

  test('is accepted if it is the configured one', async () => {
    const node = await overTls('its own');
    expect(await node.fetchPayments([HASH])).toEqual([PAID]);
    expect(asked[0]?.headers['grpc-metadata-macaroon']).toBe(MACAROON);
  });

  test('is accepted after it replaced another one', async () => {
    const own = await createSelfSignedCertificate();
    answer = json(invoice());
    const port = await listen(createTlsServer(own, handle) as unknown as Server);
    const settings = {
      lndUrl: `https://127.0.0.1:${port}`,
      lndMacaroon: MACAROON,
      lndCertificates: [(await createSelfSignedCertificate()).cert],
    };
    const node = new LndBackend(settings);
    opened.defer(() => node.close());

    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_unavailable' });
    settings.lndCertificates = [own.cert];

    expect(await node.fetchPayments([HASH])).toEqual([PAID]);
  });

  test('is accepted before and after it is renewed, if both are configured', async () => {
    const [before, after] = [await createSelfSignedCertificate(), await createSelfSignedCertificate()];
    answer = json(invoice());
    for (const own of [before, after]) {
      const port = await listen(createTlsServer(own, handle) as unknown as Server);
      const node = connect(`https://127.0.0.1:${port}`, [before.cert, after.cert]);
      expect(await node.fetchPayments([HASH])).toEqual([PAID]);
    }
  });

  test.each(['another', undefined] as const)(
    'is rejected before the macaroon is sent if the configured one is %p',
    async (trusted) => {
      const node = await overTls(trusted);
      await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_unavailable' });
      expect(asked).toEqual([]);
    },
  );
});

describe('the subscription to payments', () => {
  const line = (more: object = {}) => `${JSON.stringify({ result: invoice(more) })}\n`;

  /** Writes the chunks one after the other, and then calls `end`. */
  const sending =
    (pieces: readonly (string | Buffer)[], end: (response: ServerResponse) => void = (response) => response.end()) =>
    async (response: ServerResponse) => {
      response.socket?.setNoDelay(true);
      for (const piece of pieces) {
        await new Promise((sent) => response.write(piece, sent));
        await new Promise((resolve) => setImmediate(resolve));
      }
      end(response);
    };

  async function collect(node: LndBackend, signal = new AbortController().signal): Promise<string[]> {
    const references: string[] = [];
    for await (const reference of node.subscribe(signal)) references.push(reference);
    return references;
  }

  test('is requested with the macaroon', async () => {
    const node = await start(sending([]));
    await collect(node);
    expect(asked).toMatchObject([
      { line: 'GET /v1/invoices/subscribe', headers: { 'grpc-metadata-macaroon': MACAROON } },
    ]);
  });

  test('reports only paid invoices', async () => {
    const lines = [line({ state: 'OPEN' }), line(), line({ state: 'CANCELED' }), line({ amt_paid_msat: '7' })];
    const node = await start(sending(lines));
    expect(await collect(node)).toEqual([HASH, HASH]);
  });

  test('yields each report if a chunk has several lines, and if each byte is a chunk', async () => {
    const whole = Buffer.from(line() + line() + line());
    const everywhere = Array.from(whole, (_, i) => whole.subarray(i, i + 1));
    const node = await start(sending([whole, '\n', ...everywhere]));
    expect(await collect(node)).toHaveLength(6);
  });

  test('is read in linear time, and fails for a line that is too long', async () => {
    async function linesIn(text: string, most: number) {
      const byCharacter = (async function* () {
        yield* text;
      })();
      const lines: string[] = [];
      for await (const each of splitLines(byCharacter, most, tooLong)) lines.push(each);
      return lines;
    }
    // Searching the line again for each chunk would take longer than a test may.
    const long = 'x'.repeat(sampleSize(4_000_000, 400_000));
    expect(await linesIn(`${long}\ny\n`, long.length)).toEqual([long, 'y']);
    for (const text of ['xxx\n', 'xxx']) await expect(linesIn(text, 2)).rejects.toThrow('too long');
  });

  test('does not report an incomplete last line', async () => {
    const node = await start(sending([line(), line().trimEnd()]));
    expect(await collect(node)).toEqual([HASH]);
  });

  test('reports the complete lines before an interruption, and then fails', async () => {
    const node = await start(sending([line(), line().slice(0, 30)], (response) => response.destroy()));
    const reports = node.subscribe(new AbortController().signal);
    expect((await reports.next()).value).toBe(HASH);
    await expect(reports.next()).rejects.toThrow();
  });

  test.each<[string, string, RegExp]>([
    ['ends it with an error', '{"error":{"code":14,"message":"server is shutting down"}}\n', /reports no more$/],
    ['sends invalid JSON', '<html>\n', /cannot be read$/],
  ])('fails if the node %s', async (_, last, message) => {
    const node = await start(sending([line(), last]));
    const reports = node.subscribe(new AbortController().signal);
    expect((await reports.next()).value).toBe(HASH);
    await expect(reports.next()).rejects.toThrow(message);
  });

  test('fails with the status of an error response', async () => {
    const node = await start(json({ code: 2, message: 'expected 1 macaroon, got 0' }, 500));
    await expect(collect(node)).rejects.toMatchObject({
      code: 'upstream_error',
      message: expect.stringContaining('500'),
    });
  });

  test('fails if the node is unreachable', async () => {
    await expect(collect(connect(NOWHERE))).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });

  test('closes the connection when it is aborted', async () => {
    const stop = new AbortController();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    const node = await start((response, request) => {
      request.socket.on('close', () => leave());
      response.write(line());
    });
    const reports = node.subscribe(stop.signal);
    await reports.next();
    const waiting = reports.next();
    stop.abort();
    await expect(waiting).rejects.toThrow();
    await left;
  });
});
