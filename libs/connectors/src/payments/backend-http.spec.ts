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

describe('an answer', () => {
  /** A thirtieth of a second instead of half a minute. */
  const soon = { method: 'GET', path: '/', extraTimeoutMs: -29_967 } as const;

  function connect(url: string): BackendHttp {
    const http = new BackendHttp('The wallet', url);
    opened.defer(() => http.close());
    return http;
  }

  test.each<[string, StubHandler]>([
    ['does not come', () => {}],
    ['stops', (response) => void response.write('{')],
    [
      'drips',
      (response) => {
        const timer = setInterval(() => response.write(' '), 5);
        response.on('close', () => clearInterval(timer));
      },
    ],
  ])('that %s is waited for no longer than any other', async (_, answer) => {
    const http = connect(await start(answer));
    await expect(http.send(soon)).rejects.toMatchObject({ code: 'timeout', message: 'The wallet took too long' });
  });

  test('without an end is not read to it', async () => {
    const answer: StubHandler = (response) => {
      const more = () => {
        while (response.write('x'.repeat(1_000_000)));
      };
      response.on('drain', more);
      more();
    };
    const http = connect(await start(answer));
    await expect(http.send({ method: 'GET', path: '/' })).rejects.toThrow('The wallet sent too much');
  });

  test('that is not wanted any more ends with the reason', async () => {
    const http = connect(await start(() => {}));
    const stop = new AbortController();
    const asked = http.send({ method: 'GET', path: '/', signal: stop.signal });
    stop.abort(new Error('the process ends'));
    await expect(asked).rejects.toThrow('the process ends');
  });
});

describe.each<[string, (url: string) => PaymentBackend, string]>([
  ['cln', (url) => new ClnBackend(url, SECRET, undefined), HASH],
  ['phoenixd', (url) => new PhoenixdBackend(url, SECRET, SECRET), HASH],
  ['monero', (url) => new MoneroBackend(url, `user:${SECRET}`), '1:1795343932:200:topup:5VKK2E72h'],
  ['lnd', (url) => new LndBackend({ lndUrl: url, lndMacaroon: SECRET, lndCertificate: undefined }), HASH],
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
      'refuses',
      'upstream_error',
      (response, { headers }, body) =>
        respondWithJson({ code: -1, message: `${JSON.stringify(headers)} ${body}` }, 500)(
          response,
          undefined as never,
          '',
        ),
    ],
    ['does not let us in', 'upstream_error', respondWithJson({ code: 1502, message: SECRET }, 401)],
    ['is broken', 'upstream_error', respondWithJson({ message: SECRET }, 503)],
    ['sends a page', 'upstream_error', respondWithJson(`<html>${SECRET}</html>`)],
    ['sends nothing', 'upstream_error', respondWithJson('')],
    ['sends null', 'upstream_error', respondWithJson('null')],
    ['sends half', 'upstream_error', respondWithJson('{"result":{"addresses":[')],
    [
      'breaks off',
      'upstream_error',
      (response) => void response.writeHead(200, { 'content-length': '99' }).write('{', () => response.destroy()),
    ],
    ['hangs up', 'upstream_unavailable', (response) => void response.destroy()],
  ])('that %s fails, and no failure repeats a secret', async (_, code, answer) => {
    for (const failure of await failures(connect(await start(answer)))) {
      expect(failure).toMatchObject({ name: 'UpstreamError', code });
      expect(inspect(failure, { depth: 9 })).not.toContain(SECRET);
    }
  });

  test('that is not there is unavailable', async () => {
    for (const failure of await failures(connect('http://127.0.0.1:1'))) {
      expect(failure).toMatchObject({ name: 'UpstreamError', code: 'upstream_unavailable' });
    }
  });
});
