import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { LndBackend } from '#connectors';
import type { CoinTerms } from '#domain';
import { createSelfSignedCertificate } from '../../../../testing/src/servers/self-signed.ts';
import { splitLines } from '../lines.ts';

const tooLong = (): never => {
  throw new Error('too long');
};
const MACAROON = '0201036c6e64';
const NOWHERE = 'http://127.0.0.1:1';
const HASH = 'fb'.repeat(32);
const BASE64_HASH = Buffer.from(HASH, 'hex').toString('base64');
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

/** An invoice as LND prints it. */
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

/** Starts a server that answers as `answer` says at the time. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.defer(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return (server.address() as AddressInfo).port;
}

function connect(url: string, certificate?: string): LndBackend {
  const node = new LndBackend({ lndUrl: url, lndMacaroon: MACAROON, lndCertificate: certificate });
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

describe('making an invoice', () => {
  const MADE = { r_hash: BASE64_HASH, payment_request: 'lnbcrt1', add_index: '1' };

  test('asks LND in its own words: long numbers as text, the macaroon as a header', async () => {
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
  ])('gives the invoice and its hash in hexadecimal, printed in %s', async (_, r_hash) => {
    const node = await start(json({ ...MADE, r_hash }));
    expect(await node.createPayment(requested())).toEqual({
      reference: HASH,
      destination: { kind: 'bolt11', value: 'lnbcrt1' },
      paymentHash: HASH,
    });
  });

  test.each<[string, Answer]>([
    ['has nothing there', json({ code: 5, message: 'Not Found' }, 404)],
    ['names no hash', json({ payment_request: 'lnbcrt1' })],
    ['names no invoice', json({ r_hash: BASE64_HASH })],
    ['says nothing', json('null')],
  ])('fails when the node %s', async (_, first) => {
    const node = await start(first);
    await expect(node.createPayment(requested())).rejects.toMatchObject({
      code: 'upstream_error',
      name: 'UpstreamError',
    });
  });
});

describe('looking a payment up', () => {
  test('asks for the hash in hexadecimal, and finds the payment', async () => {
    const node = await start(json(invoice()));
    expect(await node.fetchPayments([HASH])).toEqual([PAID]);
    expect(asked[0]).toMatchObject({
      line: `GET /v1/invoice/${HASH}`,
      headers: { 'grpc-metadata-macaroon': MACAROON },
    });
  });

  test('finds what was really paid, also when it is more than was asked', async () => {
    const node = await start(json(invoice({ amt_paid_msat: '9007199254740993' })));
    expect(await node.fetchPayments([HASH])).toMatchObject([{ units: 9_007_199_254_740_993n }]);
  });

  test.each(['OPEN', 'CANCELED', 'ACCEPTED', undefined])('finds none while the invoice is %p', async (state) => {
    const node = await start(json(invoice({ state, settle_date: '0', amt_paid_msat: '0' })));
    expect(await node.fetchPayments([HASH])).toEqual([]);
  });

  test('finds those of several invoices', async () => {
    const other = 'aa'.repeat(32);
    const node = await start((response, request) => {
      const paid = request.url?.endsWith(other) ? { r_hash: Buffer.from(other, 'hex').toString('base64') } : {};
      json(invoice(paid))(response, request);
    });
    const found = await node.fetchPayments([HASH, other]);
    expect(found.map(({ reference }) => reference)).toEqual([HASH, other]);
  });

  test('finds none when the node does not know the invoice', async () => {
    const node = await start(json({ code: 5, message: 'unable to locate invoice', details: [] }, 404));
    expect(await node.fetchPayments([HASH])).toEqual([]);
  });

  test.each([
    ['of another invoice', { r_hash: Buffer.from('00'.repeat(32), 'hex').toString('base64') }],
    ['of no invoice', { r_hash: undefined }],
    ['without an amount', { amt_paid_msat: undefined }],
    ['of an amount that is none', { amt_paid_msat: 'all' }],
    ['of a negative amount', { amt_paid_msat: '-1' }],
    ['of an amount of many digits', { amt_paid_msat: '9'.repeat(200) }],
    ['of a hash that is no text', { r_hash: { length: 32 } }],
    ['in the year 33658', { settle_date: '999999999999' }],
    ['without a time', { settle_date: undefined }],
    ['at a time that is none', { settle_date: 'today' }],
  ])('believes no payment %s', async (_, nonsense) => {
    const node = await start(json(invoice(nonsense)));
    await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_error' });
  });
});

describe('a node that fails', () => {
  const calls = [
    (node: LndBackend) => node.createPayment(requested()),
    (node: LndBackend) => node.fetchPayments([HASH]),
  ];

  test.each([400, 401, 403, 500, 502, 503])('with status %i is an error of the upstream', async (status) => {
    const node = await start(json({ code: 2, message: 'no' }, status));
    for (const call of calls) await expect(call(node)).rejects.toMatchObject({ code: 'upstream_error', status });
  });

  test.each<[string, Answer]>([
    ['sends a page', json('<html>wallet locked</html>')],
    ['sends nothing', json('')],
    ['sends half an answer', json(JSON.stringify(invoice()).slice(0, 40))],
    [
      'breaks off',
      (response) => {
        response.writeHead(200, { 'content-length': '1000' }).flushHeaders();
        response.write('{"r_hash":', () => response.destroy());
      },
    ],
  ])('because it %s is an error of the upstream', async (_, first) => {
    const node = await start(first);
    for (const call of calls) await expect(call(node)).rejects.toMatchObject({ code: 'upstream_error' });
  });

  test('by hanging up, or by not being there, is unavailable', async () => {
    const hangsUp = await start((response) => void response.destroy());
    for (const node of [hangsUp, connect(NOWHERE)]) {
      for (const call of calls) await expect(call(node)).rejects.toMatchObject({ code: 'upstream_unavailable' });
    }
  });
});

describe('the certificate of the node', () => {
  async function overTls(trusted: 'its own' | 'another' | undefined): Promise<LndBackend> {
    const own = createSelfSignedCertificate();
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-lnd-'));
    opened.defer(() => rm(directory, { recursive: true }));
    const file = path.join(directory, 'tls.cert');
    await writeFile(file, trusted === 'another' ? createSelfSignedCertificate().cert : own.cert);
    answer = json(invoice());
    const port = await listen(createTlsServer(own, handle) as unknown as Server);
    return connect(`https://127.0.0.1:${port}`, trusted && file);
  }

  test('is trusted when it is the one that is configured', async () => {
    const node = await overTls('its own');
    expect(await node.fetchPayments([HASH])).toEqual([PAID]);
    expect(asked[0]?.headers['grpc-metadata-macaroon']).toBe(MACAROON);
  });

  test.each(['another', undefined] as const)(
    'is refused, and no macaroon sent, when %p is configured',
    async (trusted) => {
      const node = await overTls(trusted);
      await expect(node.fetchPayments([HASH])).rejects.toMatchObject({ code: 'upstream_unavailable' });
      expect(asked).toEqual([]);
    },
  );

  test('that is not there stops the start', () => {
    expect(() => connect(NOWHERE, '/nowhere/tls.cert')).toThrow('/nowhere/tls.cert');
  });
});

describe('the report of payments', () => {
  const line = (more: object = {}) => `${JSON.stringify({ result: invoice(more) })}\n`;

  /** Sends these pieces, each as a packet of its own, and then ends as directed. */
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

  test('is asked for with the macaroon', async () => {
    const node = await start(sending([]));
    await collect(node);
    expect(asked).toMatchObject([
      { line: 'GET /v1/invoices/subscribe', headers: { 'grpc-metadata-macaroon': MACAROON } },
    ]);
  });

  test('reports invoices that were paid, and not those that were only made', async () => {
    const lines = [line({ state: 'OPEN' }), line(), line({ state: 'CANCELED' }), line({ amt_paid_msat: '7' })];
    const node = await start(sending(lines));
    expect(await collect(node)).toEqual([HASH, HASH]);
  });

  test('is understood in whatever pieces it comes', async () => {
    const whole = Buffer.from(line() + line() + line());
    const everywhere = Array.from(whole, (_, i) => whole.subarray(i, i + 1));
    const node = await start(sending([whole, '\n', ...everywhere]));
    expect(await collect(node)).toHaveLength(6);
  });

  test('is read in a time that grows with it, and no line without end', async () => {
    async function linesIn(text: string, most: number) {
      const byCharacter = (async function* () {
        yield* text;
      })();
      const lines: string[] = [];
      for await (const each of splitLines(byCharacter, most, tooLong)) lines.push(each);
      return lines;
    }
    const long = 'x'.repeat(300_000);
    const began = performance.now();
    expect(await linesIn(`${long}\ny\n`, 300_000)).toEqual([long, 'y']);
    expect(performance.now() - began).toBeLessThan(2_000); // to look at the line again for each piece takes 4 s, and a minute for one of a million
    for (const text of [`${long}\n`, long]) {
      await expect(linesIn(text, 299_999)).rejects.toThrow('too long');
    }
  });

  test('that ends within a line does not report that one', async () => {
    const node = await start(sending([line(), line().trimEnd()]));
    expect(await collect(node)).toEqual([HASH]);
  });

  test('that breaks off has reported what came before, and fails', async () => {
    const node = await start(sending([line(), line().slice(0, 30)], (response) => response.destroy()));
    const reports = node.subscribe(new AbortController().signal);
    expect((await reports.next()).value).toBe(HASH);
    await expect(reports.next()).rejects.toThrow();
  });

  test.each<[string, string, RegExp]>([
    ['says why it ends', '{"error":{"code":14,"message":"server is shutting down"}}\n', /reports no more$/],
    ['sends what is no JSON', '<html>\n', /cannot be read$/],
  ])('fails when the node %s', async (_, last, message) => {
    const node = await start(sending([line(), last]));
    const reports = node.subscribe(new AbortController().signal);
    expect((await reports.next()).value).toBe(HASH);
    await expect(reports.next()).rejects.toThrow(message);
  });

  test('that is refused fails with the status', async () => {
    const node = await start(json({ code: 2, message: 'expected 1 macaroon, got 0' }, 500));
    await expect(collect(node)).rejects.toMatchObject({
      code: 'upstream_error',
      message: expect.stringContaining('500'),
    });
  });

  test('from a node that is not there fails', async () => {
    await expect(collect(connect(NOWHERE))).rejects.toMatchObject({ code: 'upstream_unavailable' });
  });

  test('ends when it is asked to, and lets go of the node', async () => {
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
