/** What the documented error responses and error events of providers mean to a customer and to the operator. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type ChatCall, type Hold, OperatorProblems, UpstreamError } from '#application';
import { readProviders } from '#catalogue';
import { type ConnectedProviders, createProviders } from '#connectors';
import { respondWithJson, StubServer } from '../../testing/src/servers/stub-server.ts';

const CHAT_PROVIDERS = ['openai', 'anthropic', 'openrouter', 'groq', 'deepinfra', 'google'] as const;
type ChatProvider = (typeof CHAT_PROVIDERS)[number];
const hold = {} as Hold;

let server: StubServer;
let providers: ConnectedProviders;
let problems: OperatorProblems;
let reports: string[];
let nowMs: number;
beforeEach(async () => {
  server = new StubServer();
  const baseUrl = await server.listen();
  [nowMs, reports] = [0, []];
  problems = new OperatorProblems({ reportError: (problem) => void reports.push(problem), now: () => nowMs });
  const configs = readProviders();
  const connections = configs.map(({ slug }) => [slug, { baseUrl, credential: 'secret-of-the-operator' }] as const);
  const timeouts = { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 };
  providers = createProviders(configs, { ...timeouts, providers: new Map(connections) }, problems);
});
afterEach(async () => {
  await providers.close();
  await server.close();
});

function createCall(stream: boolean, protocol: 'chat' | 'responses' = 'chat'): ChatCall {
  const messages = [{ role: 'user', content: 'Hi' }];
  return {
    protocol,
    protocols: [protocol],
    body: protocol === 'chat' ? { model: 'm', messages } : { model: 'm', input: 'Hi' },
    stream,
    withoutReasoning: false,
    identity: { id: 'gen-1', model: 'a/m', provider: 'A', created: 7 },
    signal: new AbortController().signal,
  };
}

/** Calls a provider whose response is a failure, from its start to its end. */
async function fail(
  upstream: string,
  stream: boolean,
  protocol: 'chat' | 'responses' = 'chat',
): Promise<UpstreamError> {
  const call = createCall(stream, protocol);
  const failing = providers
    .get(
      hold,
      upstream,
      protocol,
    )(call)
    .then(async (response) => {
      if (response.kind === 'stream') await response.pipeTo(() => undefined);
      throw new Error('the call succeeded');
    });
  return failing.catch((error) => error);
}

const openAi = (code: string | null, message = 'Oops', type = 'invalid_request_error') => ({
  error: { message, type, param: null, code },
});
const anthropic = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'r' });
const router = (code: number, message: string, metadata?: object) => ({ error: { code, message, metadata } });
const google = (code: number, status: string, message: string, details: readonly object[] = []) => ({
  error: { code, message, status, details },
});

describe("a problem of the operator's account", () => {
  test.each<[ChatProvider, number, object, string, string]>([
    [
      'openai',
      429,
      openAi('insufficient_quota', 'You exceeded your current quota', 'insufficient_quota'),
      'balance',
      'service',
    ],
    ['openai', 429, openAi('billing_not_active'), 'balance', 'service'],
    ['openai', 400, openAi('billing_hard_limit_reached'), 'limit', 'service'],
    ['openai', 401, openAi('invalid_api_key'), 'credential', 'service'],
    ['openai', 401, openAi('account_deactivated'), 'blocked', 'service'],
    ['openai', 403, openAi('unsupported_country_region_territory'), 'blocked', 'service'],
    ['openai', 403, openAi(null, 'Your organization must be verified'), 'permission', 'endpoint'],
    [
      'openai',
      429,
      openAi(
        'rate_limit_exceeded',
        'Request too large for m in organization org-1 on tokens per min (TPM): Limit 30000, Requested 30601.',
        'tokens',
      ),
      'request_too_large',
      'request',
    ],
    ['openai', 404, openAi('model_not_found', 'The model `m` does not exist'), 'model_removed', 'endpoint'],
    [
      'anthropic',
      400,
      anthropic(
        'invalid_request_error',
        'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
      ),
      'limit',
      'service',
    ],
    [
      'anthropic',
      400,
      anthropic('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
      'balance',
      'service',
    ],
    ['anthropic', 401, anthropic('authentication_error', 'invalid x-api-key'), 'credential', 'service'],
    ['anthropic', 402, anthropic('billing_error', 'Payment required'), 'balance', 'service'],
    ['anthropic', 403, anthropic('permission_error', 'Not allowed'), 'permission', 'endpoint'],
    ['anthropic', 404, anthropic('not_found_error', 'model: claude-m'), 'model_removed', 'endpoint'],
    ['openrouter', 401, router(401, 'User not found.'), 'credential', 'service'],
    ['openrouter', 402, router(402, 'Insufficient credits'), 'balance', 'service'],
    ['openrouter', 402, router(402, 'This request requires more credits, or fewer max_tokens.'), 'balance', 'request'],
    ['openrouter', 402, router(402, 'Prompt tokens limit exceeded: 64128 > 6964. To'), 'balance', 'request'],
    ['openrouter', 402, router(402, 'More credits are required to run this request. 9'), 'balance', 'request'],
    ['openrouter', 403, router(403, 'Key limit exceeded (total limit).'), 'limit', 'service'],
    ['openrouter', 400, router(400, 'a/m is not a valid model ID'), 'model_removed', 'endpoint'],
    ['groq', 401, openAi('invalid_api_key', 'Invalid API Key'), 'credential', 'service'],
    [
      'groq',
      413,
      openAi(
        'rate_limit_exceeded',
        'Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 9000',
        'tokens',
      ),
      'request_too_large',
      'request',
    ],
    ['groq', 400, openAi('model_decommissioned', 'The model `m` has been decommissioned'), 'model_removed', 'endpoint'],
    ['groq', 400, openAi('organization_restricted'), 'blocked', 'service'],
    ['deepinfra', 401, { detail: 'Invalid token' }, 'credential', 'service'],
    [
      'deepinfra',
      402,
      { detail: { error: 'inference prohibited, please enter a payment method' } },
      'balance',
      'service',
    ],
    ['deepinfra', 404, openAi('model_not_found'), 'model_removed', 'endpoint'],
    [
      'google',
      400,
      google(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
        { reason: 'API_KEY_INVALID' },
      ]),
      'credential',
      'service',
    ],
    [
      'google',
      400,
      google(400, 'FAILED_PRECONDITION', 'User location is not supported for the API use.'),
      'blocked',
      'service',
    ],
    [
      'google',
      429,
      google(429, 'RESOURCE_EXHAUSTED', 'Your prepayment credits are depleted. Please go to AI Studio.'),
      'balance',
      'service',
    ],
    [
      'google',
      429,
      google(429, 'RESOURCE_EXHAUSTED', 'Your project has exceeded its monthly spending cap.'),
      'limit',
      'service',
    ],
    ...['models/m is not found for API version v1beta.', 'This model models/m is no longer available.'].map(
      (message) =>
        ['google', 404, google(404, 'NOT_FOUND', message), 'model_removed', 'endpoint'] as [
          'google',
          number,
          object,
          string,
          string,
        ],
    ),
  ])(
    'at %s (%i %j) is %s of the %s, and nothing of it reaches the customer',
    async (upstream, status, body, ...expected) => {
      server.handler = respondWithJson(body, status);
      const [reason, scope] = expected;
      for (const stream of [false, true]) {
        nowMs += 600_000;
        const failure = await fail(upstream, stream);
        expect(failure).toMatchObject({
          code: 'upstream_unavailable',
          status,
          retryAfterSeconds: 30,
          operatorProblem: { reason, scope },
          publicMessage: 'The provider is currently unavailable',
          isUnsent: false,
        });
      }
      expect(server.requests).toHaveLength(2);
      expect(problems.failures).toEqual({ [upstream]: { [reason]: 2 } });
      expect(problems.listOutages()).toEqual(scope === 'service' ? { [upstream]: reason } : {});
      // Problems of one model are reported where the model is known.
      expect(reports).toHaveLength(scope === 'endpoint' ? 0 : 1);
      expect(String(reports)).not.toContain('secret-of-the-operator');
    },
  );

  test.each(CHAT_PROVIDERS)(
    'at %s is not accepted if the customer could have written its message',
    async (upstream) => {
      const quoted =
        'Invalid value: "Your credit balance is too low. You have reached your specified API usage limits"';
      server.handler = respondWithJson(
        upstream === 'anthropic'
          ? anthropic('invalid_request_error', quoted)
          : upstream === 'google'
            ? google(400, 'INVALID_ARGUMENT', quoted)
            : openAi('invalid_value', quoted),
        400,
      );
      expect(await fail(upstream, false)).toMatchObject({ code: 'invalid_request', operatorProblem: undefined });
      expect(problems.listOutages()).toEqual({});
    },
  );

  test('is a request that is larger than the rate limit also if a response of OpenAI fails with it', async () => {
    const error = { code: 'rate_limit_exceeded', message: 'Request too large for m on tokens per min (TPM): Limit 9' };
    server.handler = respondWithJson({ id: 'resp_1', status: 'failed', output: [], error }, 200);
    expect(await fail('openai', false, 'responses')).toMatchObject({
      operatorProblem: { reason: 'request_too_large', scope: 'request' },
    });
  });

  test('is not accepted at openrouter if the end of its message could be that of the request', async () => {
    server.handler = respondWithJson(router(400, 'Invalid value: a/m is not a valid model ID'), 400);
    expect(await fail('openrouter', false)).toMatchObject({ code: 'invalid_request', operatorProblem: undefined });
  });

  test('as the first event of a stream has the same meaning as with a status', async () => {
    server.handler = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(
        `data: ${JSON.stringify({ id: 'x', choices: [], error: { code: 402, message: 'Insufficient credits' } })}\n\n`,
      );
    };
    expect(await fail('openrouter', true)).toMatchObject({
      code: 'upstream_unavailable',
      deliveredText: undefined,
      operatorProblem: { reason: 'balance', scope: 'service' },
    });
    expect(reports).toHaveLength(1);
  });
});

describe('a provider with a problem that concerns all requests', () => {
  const quota = respondWithJson(openAi('insufficient_quota'), 429);
  const isSent = async () => {
    const before = server.requests.length;
    const failure = await fail('openai', false);
    expect(failure).toMatchObject({ code: 'upstream_unavailable', operatorProblem: { reason: 'balance' } });
    return server.requests.length > before;
  };

  test('rests for longer with each failure, up to five minutes, and reports when to retry', async () => {
    server.handler = quota;
    for (const restMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]) {
      expect(await isSent()).toBe(true);
      nowMs += restMs - 1;
      expect(await isSent()).toBe(false);
      expect(await fail('openai', true)).toMatchObject({ isUnsent: true, retryAfterSeconds: 1 });
      nowMs += 1;
    }
    expect(reports).toEqual([
      'the provider openai serves no requests because the balance or credit of the account is used up (OPENAI_API_KEY)',
    ]);
  });

  test('gets one request after a rest, and all others once it has succeeded', async () => {
    server.handler = quota;
    await isSent();
    nowMs += 1_000;
    const respond = Promise.withResolvers<void>();
    const received = Promise.withResolvers<void>();
    server.handler = (response) => {
      received.resolve();
      void respond.promise.then(() => response.end(JSON.stringify({ choices: [{ message: { content: 'Hi' } }] })));
    };
    const probe = providers.get(hold, 'openai', 'chat')(createCall(false));
    await received.promise;
    expect(await isSent()).toBe(false);
    respond.resolve();
    await probe;
    expect(problems.listOutages()).toEqual({});
    server.handler = quota;
    expect(await isSent()).toBe(true);
    expect(reports).toHaveLength(2);
  });

  test('gets all requests again if the first one after a rest has no result within 5 s', async () => {
    server.handler = quota;
    await isSent();
    nowMs += 1_000;
    const disconnect = new AbortController();
    const received = Promise.withResolvers<void>();
    server.handler = () => received.resolve();
    const probe = providers.get(hold, 'openai', 'chat')({ ...createCall(false), signal: disconnect.signal });
    await received.promise;
    disconnect.abort(new UpstreamError('client_disconnected', 'Gone'));
    await expect(probe).rejects.toMatchObject({ code: 'client_disconnected' });
    server.handler = respondWithJson({ choices: [{ message: { content: 'Hi' } }] }, 200);
    nowMs += 4_999;
    expect(await isSent()).toBe(false);
    nowMs += 1;
    server.handler = quota;
    const sentBefore = server.requests.length;
    await Promise.all([fail('openai', false), fail('openai', false), fail('openai', true)]);
    expect(server.requests).toHaveLength(sentBefore + 3);
    nowMs += 1_999; // the second rest
    expect(await isSent()).toBe(false);
    nowMs += 1;
    expect(await isSent()).toBe(true);
  });

  test('rests at least as long as it requested, and failures of requests from before do not add to it', async () => {
    server.handler = (response) =>
      response.writeHead(429, { 'retry-after': '120' }).end(JSON.stringify(openAi('insufficient_quota')));
    await Promise.all([fail('openai', false), fail('openai', false), fail('openai', false)]);
    nowMs += 119_999;
    expect(await isSent()).toBe(false);
    nowMs += 1;
    expect(await isSent()).toBe(true);
  });

  test('is still called if that costs nothing', async () => {
    server.handler = quota;
    await isSent();
    server.handler = respondWithJson({}, 200);
    await providers.checkKeys(new AbortController().signal, () => {});
    expect(server.requests.filter(({ line }) => line === 'GET /models').length).toBeGreaterThan(0);
  });
});

describe('a violation of the content policy', () => {
  const usage = { input_tokens: 2_000, output_tokens: 0, total_tokens: 2_000 };

  test.each([
    ['openai', 400, openAi('content_policy_violation', 'Your request was rejected')],
    ['openai', 400, openAi('invalid_prompt', 'Invalid prompt: it was flagged')],
    [
      'openrouter',
      403,
      router(403, 'Input was flagged', { reasons: ['violence'], flagged_input: 'x', provider_name: 'P' }),
    ],
    ['openrouter', 403, router(403, 'Input was flagged', { error_type: 'content_policy_violation' })],
  ])('at %s (%i) is that of the customer, who gets its message: %j', async (upstream, status, body) => {
    server.handler = respondWithJson(body, status);
    for (const stream of [false, true])
      expect(await fail(upstream, stream)).toMatchObject({
        code: 'content_policy_violation',
        status,
        publicMessage: body.error.message,
        usage: undefined,
      });
    expect(reports).toEqual([]);
  });

  test.each(['cyber_policy', 'invalid_prompt', 'bio_policy', 'image_content_policy_violation'])(
    'that fails a response (%s) has what the provider counted, streamed or not',
    async (code) => {
      const response = { id: 'resp_1', object: 'response', status: 'failed', output: [], usage };
      const failed = { ...response, error: { code, message: 'Flagged' } };
      server.handler = respondWithJson(failed, 200);
      const expected = {
        code: 'content_policy_violation',
        publicMessage: 'Flagged',
        vendorId: 'resp_1',
        deliveredText: undefined,
        usage: { input: 2_000, output: 0 },
      };
      for (const protocol of ['chat', 'responses'] as const) {
        const call = { ...createCall(false, protocol), protocols: ['responses' as const] };
        await expect(providers.get(hold, 'openai', protocol)(call)).rejects.toMatchObject(expected);
      }
      server.handler = (stream) => {
        stream.writeHead(200, { 'content-type': 'text/event-stream' });
        const created = { type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } };
        for (const event of [created, { type: 'response.failed', response: failed }])
          stream.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
        stream.end();
      };
      expect(await fail('openai', true, 'responses')).toMatchObject(expected);
    },
  );

  test('is not assumed for another 403 of a router', async () => {
    server.handler = respondWithJson(router(403, 'Provider returned error', { provider_name: 'P' }), 403);
    expect(await fail('openrouter', false)).toMatchObject({ code: 'upstream_error', status: 403 });
  });

  test('is not charged by the usage of any other failed response', async () => {
    const failed = { status: 'failed', output: [], usage, error: { code: 'server_error', message: 'Oops' } };
    server.handler = respondWithJson(failed, 200);
    expect(await fail('openai', false, 'responses')).toMatchObject({
      code: 'upstream_error',
      usage: undefined,
      unpaidUsage: { input: 2_000, output: 0 },
    });
  });
});

describe('another failure', () => {
  test.each<[string, number, object, object]>([
    ['openai', 429, openAi('rate_limit_exceeded', 'Slow down', 'requests'), { code: 'rate_limited' }],
    ['anthropic', 429, anthropic('rate_limit_error', 'Slow down'), { code: 'rate_limited' }],
    ['anthropic', 529, anthropic('overloaded_error', 'Overloaded'), { code: 'upstream_unavailable' }],
    ['anthropic', 413, anthropic('request_too_large', 'Too large'), { code: 'invalid_request' }],
    [
      ...(['anthropic', 400, anthropic('invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum')] as const),
      { code: 'invalid_request', upstreamCode: 'context_length_exceeded' },
    ],
    ['groq', 498, openAi('capacity_exceeded'), { code: 'upstream_unavailable' }],
    [
      ...([
        'google',
        429,
        google(429, 'RESOURCE_EXHAUSTED', 'You exceeded your current quota.', [{ retryDelay: '34.5s' }]),
      ] as const),
      { code: 'rate_limited', retryAfterSeconds: 34.5 },
    ],
    ['google', 503, google(503, 'UNAVAILABLE', 'The model is overloaded.'), { code: 'upstream_unavailable' }],
    ['google', 400, google(400, 'INVALID_ARGUMENT', 'Unknown name "x"'), { code: 'invalid_request' }],
    [
      ...([
        'google',
        400,
        google(400, 'INVALID_ARGUMENT', 'The input token count (9) exceeds the maximum number of tokens allowed (8).'),
      ] as const),
      { code: 'invalid_request', upstreamCode: 'context_length_exceeded' },
    ],
    [
      ...([
        'deepinfra',
        422,
        { detail: [{ loc: ['body', 'messages', 0, 'role'], msg: 'Bad role', type: 'enum' }] },
      ] as const),
      { code: 'invalid_request', publicMessage: 'Bad role', param: 'messages.0.role' },
    ],
  ])('of %s (%i) is no problem of the operator: %j', async (upstream, status, body, expected) => {
    server.handler = respondWithJson(body, status);
    for (const stream of [false, true])
      expect(await fail(upstream, stream)).toMatchObject({ ...expected, status, operatorProblem: undefined });
    expect(reports).toEqual([]);
  });

  test('of an input has the same code in a failed response as in an error response', async () => {
    const error = { code: 'invalid_image_url', message: 'No such image' };
    for (const [body, status] of [
      [{ status: 'failed', output: [], error }, 200],
      [{ error }, 400],
    ] as const) {
      server.handler = respondWithJson(body, status);
      expect(await fail('openai', false, 'responses')).toMatchObject({
        code: 'invalid_request',
        upstreamCode: 'invalid_image_url',
        publicMessage: 'No such image',
      });
    }
  });

  test('of a data provider with status 402 is a problem of the operator', async () => {
    server.handler = respondWithJson({ message: 'Payment required' }, 402);
    const { signal } = new AbortController();
    const call = { method: 'GET', path: '/x', query: [], headers: {}, isFile: false, signal } as never;
    await expect(providers.get(hold, 'hunter', 'data')(call)).rejects.toMatchObject({
      code: 'upstream_unavailable',
      operatorProblem: { reason: 'balance', scope: 'service' },
    });
  });
});
