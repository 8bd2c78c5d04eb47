import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { ProviderHttp } from '../../http/provider-http.ts';
import { ExaSearch, searchRequestFilter } from './exa-search.ts';

/** Timeout for responses that never arrive. Other searches have a longer one, so that they pass on a busy host. */
const SHORT_MS = 1_500;

let server: Server;
let http: ProviderHttp;
let exa: ExaSearch;
let hasty: ExaSearch;
let answer: RequestListener;
beforeAll(async () => {
  server = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  http = new ProviderHttp(baseUrl, { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 }, 'k');
  const endpoint = http.createJsonClient('/search', { headers: {}, fieldFilter: searchRequestFilter });
  exa = new ExaSearch(endpoint);
  hasty = new ExaSearch(endpoint, {}, SHORT_MS);
});
afterAll(async () => {
  await http.close();
  server.closeAllConnections();
  server.close();
});

const search = (signal = new AbortController().signal, by = exa) =>
  by.search({ query: 'q', maxResults: 2, includeDomains: [], excludeDomains: [], signal });
const sends =
  (status: number, body: unknown): RequestListener =>
  (_, response) => {
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  };

test('a missing title or text is replaced; a result without a URL or above the maximum is left out', async () => {
  const results = [
    { url: 'https://a.example', title: 'A', text: 'words' },
    { url: 'https://b.example' },
    { title: 'nowhere' },
    { url: 'https://c.example', title: 'one too many' },
  ];
  answer = sends(200, { requestId: 'exa-1', results });
  expect(await search()).toEqual({
    results: [results[0], { url: 'https://b.example', title: 'https://b.example', text: '' }],
    vendorId: 'exa-1',
    extraResults: 0,
    reportedBill: {},
  });
});

async function fails(searching: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  const failure = (await searching.catch((error) => error)) as UpstreamError;
  expect(failure).toBeInstanceOf(UpstreamError);
  expect([failure.code, failure.message]).toEqual([code, expect.stringMatching(message)]);
}

describe('a search that fails', () => {
  test.each<[string, RequestListener, string, RegExp]>([
    ['a rejection as a provider error', sends(400, { error: 'query' }), 'upstream_error', /web search rejected/],
    ['too many requests', sends(429, {}), 'rate_limited', /limiting/],
    ['a server error', sends(500, {}), 'upstream_error', /status 500/],
    ['overload', sends(503, {}), 'upstream_unavailable', /unavailable/],
    ['invalid JSON', sends(200, '<html>'), 'upstream_error', /invalid response/],
    ['null', sends(200, null), 'upstream_error', /invalid response/],
    ['results that are not a list', sends(200, { results: 'none' }), 'upstream_error', /invalid response/],
    ['a disconnect', ({ socket }) => void socket.destroy(), 'upstream_unavailable', /web search cannot be reached/],
  ])('reports %s', async (_, listener, code, message) => {
    answer = listener;
    await fails(search(), code, message);
  });

  test.each<[string, RequestListener, string, RegExp]>([
    ['no response', () => {}, 'upstream_unavailable', /web search cannot be reached/],
    [
      'an endless response',
      (_, response) => void response.writeHead(200).write('{"results":['),
      'upstream_error',
      /ended the response early/,
    ],
  ])('ends at its timeout if there is %s', async (_, listener, code, message) => {
    answer = listener;
    await fails(search(undefined, hasty), code, message);
  });

  test('reports the reason if it is aborted', async () => {
    answer = () => {};
    const abort = new AbortController();
    const searching = search(abort.signal).catch((error) => error);
    abort.abort(new UpstreamError('shutdown', 'The gateway is shutting down'));
    expect(await searching).toMatchObject({ code: 'shutdown' });
  });
});
