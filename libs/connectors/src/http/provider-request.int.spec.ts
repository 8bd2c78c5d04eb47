/** Whether a failed request may have reached its provider, for both ways of sending one. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { Agent, buildConnector } from 'undici';
import { UpstreamError } from '#application';
import { allowAny } from './field-filter.ts';
import { JsonHttpClient } from './json-http-client.ts';
import { sendProviderRequest } from './provider-request.ts';

const NEVER = new AbortController().signal;
const LEFT = new UpstreamError('client_disconnected', 'The client has left');

type Send = (url: string, agent: Agent, signal: AbortSignal) => Promise<unknown>;

const sendRequest: Send = async (url, agent, signal) => {
  const mapErrorResponse = (status: number) => new UpstreamError('upstream_error', 'no', { status });
  const request = { method: 'POST', headers: {}, body: { a: 1 }, signal, mapErrorResponse } as const;
  return (await sendProviderRequest(url, agent, request)).json();
};
const CLIENTS: readonly [name: string, send: Send][] = [
  ['a request for media or data', sendRequest],
  [
    'a request for a text',
    (url, agent, signal) => new JsonHttpClient(url, agent, { headers: {}, fieldFilter: allowAny }).post({}, signal),
  ],
];

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function listen(server: Server | TcpServer, scheme = 'http'): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closing.push(() => server.close());
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function openAgent(connect?: buildConnector.connector): Agent {
  const agent = new Agent(connect ? { connect } : {});
  closing.push(() => agent.destroy());
  return agent;
}

describe.each(CLIENTS)('%s', (_, send) => {
  const respond: RequestListener = (request, response) => request.resume().on('end', () => response.end('{}'));

  test('has no open cost if it is aborted while it connects', async () => {
    let requests = 0;
    const server = createServer((request, response) => {
      requests++;
      respond(request, response);
    });
    const abort = new AbortController();
    const connect = buildConnector({});
    const agent = openAgent((options, done) =>
      connect(options, (...connected) => {
        abort.abort(LEFT);
        done(...connected);
      }),
    );

    const expected = { code: LEFT.code, hasOpenCost: false, deliveredText: undefined };
    await expect(send(await listen(server), agent, abort.signal)).rejects.toMatchObject(expected);
    expect(requests).toBe(0);
  });

  test('has no open cost if the connection is lost before it is secure', async () => {
    const url = await listen(
      createTcpServer((socket) => void socket.resetAndDestroy()),
      'https',
    );

    const expected = { code: 'upstream_unavailable', hasOpenCost: false, deliveredText: undefined };
    await expect(send(url, openAgent(), NEVER)).rejects.toMatchObject(expected);
  });

  test('is sent on a new connection if the provider has closed the last one', async () => {
    const sockets: Socket[] = [];
    const url = await listen(createServer(respond).on('connection', (socket) => void sockets.push(socket)));
    const agent = openAgent();
    await send(url, agent, NEVER);
    sockets[0]?.resetAndDestroy();

    await send(url, agent, NEVER);
    expect(sockets.length).toBe(2);
  });

  test('may have been processed if its connection is lost after it was sent', async () => {
    const url = await listen(createServer(({ socket }) => void socket.resetAndDestroy()));

    const failure = (await send(url, openAgent(), NEVER).catch((error) => error)) as UpstreamError;
    expect([failure.isUnsent, failure.hasOpenCost || failure.deliveredText === '']).toEqual([false, true]);
  });
});
