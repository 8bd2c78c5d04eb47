import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { PaymentBackend } from '#application';
import { ClnBackend, LndBackend, MoneroBackend, PhoenixdBackend } from '#connectors';
import { respondWithJson, type StubHandler, StubServer } from '../../../testing/src/servers/stub-server.ts';
import { BackendHttp } from './backend-http.ts';

const HASH = 'fb'.repeat(32);
const SECRET = 'c0ffee';

let opened: AsyncDisposableStack;
beforeEach(() => {
  opened = new AsyncDisposableStack();
});
afterEach(() => opened.disposeAsync());

async function start(answer: StubHandler): Promise<string> {
  const server = new StubServer();
  opened.defer(() => server.close());
  server.handler = answer;
  return server.listen();
}

describe('a response of a payment backend', () => {
  /** A timeout of 33 ms instead of 30 s. */
  const soon = { method: 'GET', path: '/', extraTimeoutMs: -29_967 } as const;

  function connect(url: string): BackendHttp {
    const http = new BackendHttp('The wallet', url);
    opened.defer(() => http.close());
    return http;
  }

  test.each<[string, StubHandler]>([
    ['does not arrive', () => {}],
    ['stops', (response) => void response.write('{')],
    [
      'arrives byte by byte',
      (response) => {
        const timer = setInterval(() => response.write(' '), 5);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('that %s fails after the timeout', async (_, answer) => {
    const http = connect(await start(answer));
    await expect(http.send(soon)).rejects.toMatchObject({ code: 'timeout', message: 'The wallet took too long' });
  });

  test('without an end fails once it is too large', async () => {
    const answer: StubHandler = (response) => {
      const more = () => {
        while (response.write('x'.repeat(1_000_000)));
      };
      response.on('drain', more);
      more();
    };
    const http = connect(await start(answer));
    await expect(http.send({ method: 'GET', path: '/' })).rejects.toThrow('The wallet sent too many bytes');
  });

  test('that the caller aborts fails with the reason of the caller', async () => {
    const http = connect(await start(() => {}));
    const stop = new AbortController();
    const asked = http.send({ method: 'GET', path: '/', signal: stop.signal });
    stop.abort(new Error('the process ends'));
    await expect(asked).rejects.toThrow('the process ends');
  });
});

describe.each<[string, (url: string) => PaymentBackend, string]>([
  ['cln', (url) => new ClnBackend({ clnUrl: url, clnRune: SECRET, clnCertificates: undefined }), HASH],
  [
    'phoenixd',
    (url) => new PhoenixdBackend({ phoenixdUrl: url, phoenixdPassword: SECRET, phoenixdWebhookSecret: SECRET }),
    HASH,
  ],
  [
    'monero',
    (url) => new MoneroBackend({ moneroUrl: url, moneroLogin: `user:${SECRET}` }),
    '1:1795343932:200:topup:5VKK2E72h',
  ],
  ['lnd', (url) => new LndBackend({ lndUrl: url, lndMacaroon: SECRET, lndCertificates: undefined }), HASH],
])('%s', (_, open, reference) => {
  const asked = {
    topupId: 'topup',
    coin: { code: 'BTC', name: 'Bitcoin', decimals: 11, step: 1000, currencies: {} },
    kind: 'bolt11' as const,
    units: 1_000n,
    memo: 'x',
    expirySeconds: 900,
    confirmations: 0,
  };
  function connect(url: string): PaymentBackend {
    const backend = open(url);
    opened.defer(() => backend.close());
    return backend;
  }
  const failures = (backend: PaymentBackend) =>
    Promise.all(
      [backend.fetchPayments([reference]), backend.createPayment(asked)].map((each) =>
        each.then(
          () => expect(each).rejects.toThrow(),
          (error: unknown) => error,
        ),
      ),
    );

  test.each<[string, string, StubHandler]>([
    [
      'rejects the request',
      'upstream_error',
      (response, { headers }, body) =>
        respondWithJson({ code: -1, message: `${JSON.stringify(headers)} ${body}` }, 500)(
          response,
          undefined as never,
          '',
        ),
    ],
    ['rejects the credentials', 'upstream_unavailable', respondWithJson({ code: 1502, message: SECRET }, 401)],
    ['is unavailable', 'upstream_error', respondWithJson({ message: SECRET }, 503)],
    ['sends an HTML page', 'upstream_error', respondWithJson(`<html>${SECRET}</html>`)],
    ['sends an empty response', 'upstream_error', respondWithJson('')],
    ['sends null', 'upstream_error', respondWithJson('null')],
    ['sends incomplete JSON', 'upstream_error', respondWithJson('{"result":{"addresses":[')],
    [
      'interrupts its response',
      'upstream_error',
      (response) => void response.writeHead(200, { 'content-length': '99' }).write('{', () => response.destroy()),
    ],
    ['closes the connection', 'upstream_unavailable', (response) => void response.destroy()],
  ])('fails without a secret in the error if the backend %s', async (_, code, answer) => {
    for (const failure of await failures(connect(await start(answer)))) {
      expect(failure).toMatchObject({ name: 'UpstreamError', code, isUnsent: false });
      expect(inspect(failure, { depth: 9 })).not.toContain(SECRET);
    }
  });

  test('fails with upstream_unavailable if the backend is unreachable', async () => {
    for (const failure of await failures(connect('http://127.0.0.1:1'))) {
      expect(failure).toMatchObject({ name: 'UpstreamError', code: 'upstream_unavailable', isUnsent: true });
    }
  });
});
