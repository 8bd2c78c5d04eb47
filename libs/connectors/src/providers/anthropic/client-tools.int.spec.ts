/** Tools of Anthropic that the client runs, as Anthropic's endpoint gets them. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from '@jest/globals';
import { type JsonObject } from '#kernel';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createAnthropicProvider } from './index.ts';

const ANSWER = { type: 'message', content: [], stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } };

/** Sends a chat with these tools and rules. @returns the request that the endpoint got */
async function send(
  tools: readonly object[],
  modelRules = {},
  cachesForHour = false,
): Promise<{ readonly headers: IncomingHttpHeaders; readonly body: JsonObject }> {
  const { promise, resolve } = Promise.withResolvers<{ headers: IncomingHttpHeaders; body: JsonObject }>();
  const server = createServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
    resolve({ headers: request.headers, body });
    response.end(JSON.stringify(ANSWER));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const timeouts = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
  const provider = createAnthropicProvider({ http: new ProviderHttp(url, timeouts, 'any'), credential: 'any' });
  try {
    await provider.chat({
      protocol: 'chat',
      protocols: ['chat'],
      modelRules,
      stream: false,
      withoutReasoning: false,
      cachesForHour,
      body: { model: 'm', messages: [{ role: 'user', content: 'Hello' }], tools },
      identity: { id: 'gen-1', model: 'm', provider: 'Anthropic', created: 7 },
      signal: new AbortController().signal,
    });
    return await promise;
  } finally {
    await provider.close();
    server.close();
  }
}

const declare = (anthropic_tool: object, more: object = {}) => ({
  type: 'function',
  function: { name: 'f', parameters: { type: 'object' } },
  anthropic_tool,
  ...more,
});
const bash = { type: 'bash_20250124', name: 'bash' };
const computer = { type: 'computer_20251124', name: 'computer', display_width_px: 8, display_height_px: 6 };

const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } };

test('a tool that the client runs is sent as it is, with its cache mark', async () => {
  const { body, headers } = await send([declare(bash, hour)], {}, true);
  expect(body.tools).toEqual([{ ...bash, ...hour }]);
  expect(headers).not.toHaveProperty('anthropic-beta');
});

test('a cache has the default lifetime at an endpoint without a price for others', async () => {
  expect((await send([declare(bash, hour)])).body.tools).toEqual([{ ...bash, cache_control: { type: 'ephemeral' } }]);
});

test('the betas that tools require are requested, together with that of the model', async () => {
  const options = { enable_zoom: true, unknown: 1 };
  const { body, headers } = await send([declare({ ...computer, ...options }), declare(computer), declare(bash)], {
    thinking: 'adaptive',
    preservedThinking: true,
  });
  expect(body.tools).toEqual([{ ...computer, enable_zoom: true }, computer, bash]);
  expect(headers['anthropic-beta']).toBe('thinking-binding-controls-2026-08-01,computer-use-2025-11-24');
});

test.each(['web_search_20250305', 'code_execution_20260521', 'mcp_toolset', 'custom', null])(
  'a tool of another type is not sent, but its function: %s',
  async (type) => {
    const { body } = await send([declare({ type, name: 'x' })]);
    expect(body.tools).toEqual([{ name: 'f', input_schema: { type: 'object' } }]);
  },
);
