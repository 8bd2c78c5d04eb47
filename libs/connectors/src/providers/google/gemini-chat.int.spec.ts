/** The connector against the sandbox. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ChatCall, NativeSearch, SearchStatus } from '#application';
import { readProviders, readRuleSets } from '#catalogue';
import type { JsonObject } from '#kernel';
import { startSandbox } from '../../../../../apps/sandbox/src/sandbox.ts';
import { ProviderHttp } from '../../http/provider-http.ts';
import { createGoogleProvider } from './index.ts';

const identity = { id: 'gen-1', model: 'google/gemini-3.8-flash', provider: 'Google AI Studio', created: 7 };
const timeouts = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
const modelRules = readRuleSets()['gemini-3.6'] ?? {};

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let provider: ReturnType<typeof createGoogleProvider>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  const config = readProviders().find(({ slug }) => slug === 'google');
  const http = new ProviderHttp(`${sandbox.url}/google`, timeouts, 'any', { errorRules: config?.errors });
  provider = createGoogleProvider({ http, credential: 'any' }, config);
});
afterAll(async () => {
  await provider.close();
  await sandbox.close();
});

interface Received {
  // biome-ignore lint/suspicious/noExplicitAny: messages of every shape
  readonly message: any;
  readonly finish: unknown;
  readonly usage: unknown;
  readonly searches: readonly SearchStatus[] | undefined;
  readonly invoiced: number | undefined;
}

/** Sends a chat, and returns the message of the response, whether it was streamed or not. */
async function send(
  messages: readonly JsonObject[],
  stream: boolean,
  more: JsonObject = {},
  search?: NativeSearch,
): Promise<Received> {
  const call: ChatCall = {
    protocol: 'chat',
    protocols: ['chat'],
    stream,
    withoutReasoning: false,
    identity,
    modelRules,
    body: { model: 'gemini-3.8-flash', messages, ...more },
    search,
    signal: new AbortController().signal,
  };
  const answer = await provider.chat(call);
  if (answer.kind === 'complete') {
    // biome-ignore lint/suspicious/noExplicitAny: choices of every shape
    const [{ message, finish_reason }] = answer.body.choices as any;
    const { usage, searches } = answer;
    return { message, finish: finish_reason, usage, searches: searches?.statuses, invoiced: searches?.invoiced };
  }
  let text = '';
  const searches: SearchStatus[] = [];
  await answer.pipeTo((events, status) => {
    text += Buffer.from(events).toString();
    if (status) searches.push(status);
    return undefined;
  });
  const chunks = text.split('\n\n').filter((chunk) => chunk !== '');
  const choices = chunks.map((chunk) => JSON.parse(chunk.replace('data: ', '')).choices[0]);
  const join = (field: string) => choices.map(({ delta }) => delta[field] ?? '').join('');
  const list = (field: string) => choices.flatMap(({ delta }) => delta[field] ?? []);
  const message = {
    role: 'assistant',
    content: join('content'),
    reasoning: join('reasoning'),
    tool_calls: list('tool_calls'),
    reasoning_details: list('reasoning_details'),
    annotations: list('annotations'),
  };
  const invoiced = answer.countInvoicedSearches?.();
  return { message, finish: choices.at(-1).finish_reason, usage: answer.usage(), searches, invoiced };
}

const user = (content: string) => ({ role: 'user', content });
const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }];

describe.each([false, true])('a chat with Gemini (stream: %s)', (stream) => {
  test('has text, reasoning and usage', async () => {
    const more = { reasoning: { effort: 'low' } };
    const { message, finish, usage } = await send([user('[[sandbox text="A b" reasoning=3]]')], stream, more);
    expect(message).toMatchObject({ content: 'A b', reasoning: 'every coin that' });
    expect([finish, usage]).toEqual(['stop', { input: 19, cacheRead: 0, cacheWrite: 0, output: 2, reasoning: 3 }]);
  });

  test('continues with the results of parallel calls, whose signature it gets back', async () => {
    const asked = user('[[sandbox tool=weather tools=2 tool_times=2]]');
    const first = await send([asked], stream, { tools });
    expect(first.finish).toBe('tool_calls');
    const results = first.message.tool_calls.map(({ id }: { id: string }) => {
      return { role: 'tool', tool_call_id: id, content: 'fine' };
    });
    expect(results).toHaveLength(2);
    expect(first.message.reasoning_details).toHaveLength(1);
    const second = await send([asked, first.message, ...results], stream, { tools });
    expect(second.finish).toBe('tool_calls');
    // The sandbox rejects the signatures of another model, which are not sent.
    const model = 'gemini-3.1-pro-preview';
    expect(await send([asked, first.message, ...results], stream, { tools, model })).toMatchObject({
      finish: 'tool_calls',
    });
  });

  test('searches the web with one invoiced search per query', async () => {
    const search = { maxUses: 3, isRequired: true, includeDomains: [], excludeDomains: [] };
    const messages = [user('[[sandbox tool=web_search tool_times=2 text="Jä, 3"]]')];
    const { message, usage, searches, invoiced } = await send(messages, stream, {}, search);
    expect(message.content).toBe('Jä, 3');
    expect(message.annotations).toEqual(
      [1, 2].map((at) => ({
        type: 'url_citation',
        url_citation: { url: `https://site1.example/${at}`, title: 'Page 1', start_index: 0, end_index: 5 },
      })),
    );
    const completed = searches?.filter(({ state }) => state === 'completed');
    expect(completed).toEqual([0, 1].map((at) => ({ at, query: `what was asked, ${at + 1}`, state: 'completed' })));
    expect([invoiced, usage]).toEqual([2, expect.objectContaining({ input: 43, output: 4 })]);
    expect(await send([user('Hi')], stream, {}, search)).toMatchObject({ invoiced: 0, searches: [] });
  });

  test('has JSON by its schema', async () => {
    const schema = { type: 'object', properties: { city: { enum: ['Ur'] } }, required: ['city'] };
    const response_format = { type: 'json_schema', json_schema: { name: 'place', schema } };
    expect((await send([user('Where?')], stream, { response_format })).message.content).toBe('{"city":"Ur"}');
  });

  test('reads cached tokens', async () => {
    expect((await send([user('[[sandbox fault=cached]]')], stream)).usage).toMatchObject({ input: 6, cacheRead: 6 });
  });

  test.each([
    ['policy', { code: 'content_policy_violation', usage: undefined }],
    ['policy_billed', { code: 'content_policy_violation', usage: { input: 13, output: 0 } }],
    ['overloaded', { code: 'upstream_unavailable', status: 503, operatorProblem: undefined }],
    ['429', { code: 'rate_limited', retryAfterSeconds: 1 }],
    ['400', { code: 'invalid_request', status: 400 }],
    ['401', { operatorProblem: { reason: 'credential', scope: 'service' } }],
    ['404', { operatorProblem: { reason: 'model_removed', scope: 'endpoint' } }],
    ['balance', { operatorProblem: { reason: 'balance', scope: 'service' } }],
    ['limit', { operatorProblem: { reason: 'limit', scope: 'service' } }],
    ['cut', { code: 'upstream_error' }],
    ['error', { code: 'upstream_error' }],
    ['malformed', { code: 'upstream_error' }],
  ])('fails with fault=%s', async (fault, expected) => {
    await expect(send([user(`[[sandbox fault=${fault}]]`)], stream)).rejects.toMatchObject(expected);
  });

  test('that is stopped for safety has what came before', async () => {
    const { message, finish } = await send([user('[[sandbox text=Yes fault=refusal]]')], stream);
    expect([message.content, finish]).toEqual(['Yes', 'content_filter']);
  });
});

test('a model that does not exist is a problem of the operator', async () => {
  await expect(send([user('Hi')], false, { model: 'gemini-1' })).rejects.toMatchObject({
    operatorProblem: { reason: 'model_removed', scope: 'endpoint' },
  });
});
