import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type GeneratedImages, type ImageCall, UpstreamError } from '#application';
import { PIXEL } from '#testing';
import { respondWithJson, type StubHandler, StubServer } from '../../../testing/src/servers/stub-server.ts';
import { ProviderHttp } from '../http/provider-http.ts';
import { createFalProvider } from './fal/index.ts';
import { createGoogleProvider } from './google/index.ts';
import { createOpenAiProvider } from './openai/index.ts';

type Make = (call: ImageCall) => Promise<GeneratedImages>;

const server = new StubServer();
let http: ProviderHttp;
let url: string;
let makers: Readonly<Record<'openai' | 'fal' | 'google', Make>>;
beforeAll(async () => {
  url = await server.listen();
  http = new ProviderHttp(url, { connectTimeoutMs: 60_000, idleTimeoutMs: 60_000 }, 'k');
  const at = { http, credential: 'k' };
  const vendor = { slug: 'v', protocol: 'v', baseUrl: url };
  makers = {
    openai: createOpenAiProvider(at, {}).images,
    fal: createFalProvider(at, vendor).images,
    google: createGoogleProvider(at).images,
  };
});
afterAll(async () => {
  await http.close();
  await server.close();
});
beforeEach(() => {
  server.requests.length = 0;
});

const picture = new Blob([PIXEL], { type: 'image/png' });
const call = (more: Partial<ImageCall> = {}): ImageCall => ({
  model: 'maker/model',
  prompt: 'A coin',
  images: [],
  count: 1,
  parameters: {},
  wireMapping: {},
  signal: new AbortController().signal,
  ...more,
});

async function failureOf(vendor: keyof typeof makers, answer: StubHandler): Promise<UpstreamError> {
  server.handler = answer;
  return makers[vendor](call()).then(
    () => {
      throw new Error('the call succeeded');
    },
    (failure: UpstreamError) => failure,
  );
}

test('an aborted call to OpenAI may be invoiced if it was sent', async () => {
  const abort = new AbortController();
  const reason = new UpstreamError('client_disconnected', 'The client has left');
  server.handler = () => abort.abort(reason);
  const generate = () => makers.openai(call({ signal: abort.signal }));
  await expect(generate()).rejects.toMatchObject({ code: reason.code, hasOpenCost: true, isUnsent: false });
  await expect(generate()).rejects.toMatchObject({ code: reason.code, hasOpenCost: false, isUnsent: true });
});

const BASE64 = PIXEL.toString('base64');

describe('a failed call', () => {
  const openAiError = (code: string | null, message = 'No') => ({ error: { message, code, param: null } });
  const googleError = (status: string, details: unknown = []) => ({ error: { message: 'No', status, details } });
  const falError = (type: string) => ({ detail: [{ loc: ['body', 'prompt'], msg: 'No', type }] });
  test.each<[keyof typeof makers, number, unknown, string]>([
    ['openai', 400, openAiError('moderation_blocked'), 'content_policy_violation'],
    ['openai', 400, openAiError('content_policy_violation'), 'content_policy_violation'],
    ['openai', 400, openAiError('invalid_value'), 'invalid_request'],
    ['openai', 400, openAiError('billing_hard_limit_reached'), 'upstream_unavailable'],
    ['openai', 429, openAiError('insufficient_quota'), 'upstream_unavailable'],
    ['openai', 429, openAiError('rate_limit_exceeded'), 'rate_limited'],
    ['openai', 401, openAiError('invalid_api_key'), 'upstream_unavailable'],
    ['openai', 500, 'oops', 'upstream_error'],
    ['fal', 422, falError('content_policy_violation'), 'content_policy_violation'],
    ['fal', 422, falError('string_too_long'), 'invalid_request'],
    ['fal', 403, { detail: 'User is locked. Reason: Exhausted balance.' }, 'upstream_unavailable'],
    ['fal', 429, { detail: 'Too many' }, 'rate_limited'],
    ['fal', 504, {}, 'timeout'],
    ['google', 400, googleError('INVALID_ARGUMENT'), 'invalid_request'],
    ['google', 400, googleError('INVALID_ARGUMENT', [{ reason: 'API_KEY_INVALID' }]), 'upstream_unavailable'],
    ['google', 400, googleError('FAILED_PRECONDITION'), 'upstream_unavailable'],
    ['google', 403, googleError('PERMISSION_DENIED'), 'upstream_unavailable'],
    ['google', 429, googleError('RESOURCE_EXHAUSTED'), 'rate_limited'],
    ['google', 503, googleError('UNAVAILABLE'), 'upstream_unavailable'],
  ])('of %s: %d %j is reported as %s', async (vendor, status, body, code) => {
    const failure = await failureOf(vendor, respondWithJson(body, status));
    expect(failure).toMatchObject({ code, status, deliveredText: undefined, usage: undefined });
    expect(failure.publicMessage).not.toMatch(/balance|key/i);
  });

  test.each(['openai', 'fal', 'google'] as const)('of %s: a lost or cut response may be invoiced', async (vendor) => {
    const lost: StubHandler = (_, request) => void request.socket.destroy();
    expect(await failureOf(vendor, lost)).toMatchObject({ code: 'upstream_unavailable', deliveredText: '' });
    expect(await failureOf(vendor, respondWithJson('{"broken'))).toMatchObject({
      code: 'upstream_error',
      deliveredText: '',
    });
  });

  test.each(['openai', 'google'] as const)('of %s: a response without an image may be invoiced', async (vendor) => {
    expect(await failureOf(vendor, respondWithJson({ created: 1 }))).toMatchObject({
      code: 'upstream_error',
      deliveredText: '',
    });
    expect(await failureOf(vendor, respondWithJson(null))).toMatchObject({ code: 'upstream_error', deliveredText: '' });
  });
});

test('OpenAI, fal and Google receive the user agent', async () => {
  for (const vendor of ['openai', 'fal', 'google'] as const) await failureOf(vendor, respondWithJson({}, 400));
  expect(server.requests.map(({ headers }) => headers['user-agent'])).toEqual(Array(3).fill('Countinghouse/1'));
});

describe("OpenAI's images", () => {
  test('are billed by text and image tokens, for input and output; an invalid usage is ignored', async () => {
    const input_tokens_details = { text_tokens: 4, image_tokens: 300 };
    const output_tokens_details = { text_tokens: 6, image_tokens: 1_000 };
    const usage = { input_tokens: 304, output_tokens: 1_006, input_tokens_details, output_tokens_details };
    server.handler = respondWithJson({ data: [{ b64_json: BASE64 }, { url: 'https://x.example/a.png' }, null], usage });
    expect(await makers.openai(call({ count: 3 }))).toEqual({
      files: [
        { kind: 'bytes', bytes: PIXEL },
        { kind: 'address', url: 'https://x.example/a.png' },
      ],
      usage: { input: 4, imageInput: 300, output: 6, imageOutput: 1_000 },
      vendorId: undefined,
      properties: {},
    });
    const absurd = { input_tokens: 5, output_tokens: -1 };
    server.handler = respondWithJson({ data: [{ b64_json: BASE64 }], usage: absurd });
    expect((await makers.openai(call())).usage).toBeUndefined();
  });

  test('have the properties that the response reports, unless they are implausible', async () => {
    const reported = { size: '1024x1024', quality: 'low', background: '<b>' };
    server.handler = respondWithJson({ data: [{ b64_json: BASE64 }], ...reported });
    expect((await makers.openai(call())).properties).toEqual({ size: '1024x1024', quality: 'low' });
  });

  test('are requested by a form with the parameters of `withImage` if there is an input image', async () => {
    server.handler = respondWithJson({ data: [{ b64_json: BASE64 }] });
    const wire = {
      words: { size: { '3:2': '1536x1024' } },
      withImage: { always: { input_fidelity: 'low' } },
    };
    await makers.openai(
      call({ images: [picture], mask: picture, parameters: { size: '3:2', quality: 'low' }, wireMapping: wire }),
    );
    const [{ line, headers, body }] = server.requests as [(typeof server.requests)[number]];
    expect([line, headers['content-type']]).toEqual([
      'POST /images/edits',
      expect.stringMatching(/^multipart\/form-data; boundary=/),
    ]);
    for (const part of [/name="size"\s+1536x1024/, /name="input_fidelity"\s+low/, /name="image\[\]"/, /name="mask"/])
      expect(body).toMatch(part);
  });
});

describe("fal's images", () => {
  const queue =
    (result: StubHandler): StubHandler =>
    (response, request, body) => {
      const at = `${url}/maker/model/requests/r1`;
      const told = { request_id: 'r1', status_url: `${at}/status`, response_url: at, cancel_url: `${at}/cancel` };
      if (request.method === 'POST') respondWithJson(told)(response, request, body);
      else if (request.url?.endsWith('/status')) respondWithJson({ status: 'COMPLETED' })(response, request, body);
      else result(response, request, body);
    };
  const image = (name: string) => ({ url: `https://files.example/${name}.png` });

  test("are requested with fal's names and values, and have the URLs in the result of the queue", async () => {
    server.handler = queue(respondWithJson({ images: [image('a'), image('b')] }));
    const wire = { names: { size: 'image_size' }, words: { size: { '1:1': 'square_hd' } }, always: { max_images: 1 } };
    const parameters = { size: '1:1', seed: 7 };
    expect(await makers.fal(call({ count: 2, parameters, wireMapping: wire }))).toEqual({
      files: ['a', 'b'].map((name) => ({ kind: 'address', ...image(name) })),
      usage: { image: 2 },
      vendorId: 'r1',
    });
    const sent = { prompt: 'A coin', num_images: 2, image_size: 'square_hd', seed: 7, max_images: 1 };
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual(sent);
    expect(server.requests.map(({ line }) => line)).toEqual([
      'POST /maker/model',
      'GET /maker/model/requests/r1/status',
      'GET /maker/model/requests/r1',
    ]);
  });

  test('are requested from the editing model of the wire mapping if there is an input image', async () => {
    server.handler = queue(respondWithJson({ image: image('a') }));
    await makers.fal(call({ images: [picture], wireMapping: { withImage: { model: 'maker/model/edit' } } }));
    const [{ line, body }] = server.requests as [(typeof server.requests)[number]];
    expect([line, JSON.parse(body).image_urls]).toEqual([
      'POST /maker/model/edit',
      [`data:image/png;base64,${BASE64}`],
    ]);
  });

  test('are billed but not delivered if fal flags them as NSFW', async () => {
    server.handler = queue(respondWithJson({ images: [image('a'), image('b')], has_nsfw_concepts: [true, false] }));
    expect(await makers.fal(call())).toMatchObject({ files: [image('b')], usage: { image: 2 } });
    const all = await failureOf('fal', queue(respondWithJson({ images: [image('a')], has_nsfw_concepts: [true] })));
    expect(all).toMatchObject({ code: 'content_policy_violation', usage: { image: 1 }, vendorId: 'r1' });
  });

  test('fail with the id of the request if fal returns URLs outside of the queue', async () => {
    const elsewhere = 'http://169.254.169.254/latest';
    const told = { request_id: 'r1', status_url: elsewhere, response_url: elsewhere, cancel_url: elsewhere };
    const leaving = new AbortController();
    server.handler = (response, ...asked) => {
      response.once('finish', () => setTimeout(() => leaving.abort(), 300));
      respondWithJson(told)(response, ...asked);
    };
    await expect(makers.fal(call({ signal: leaving.signal }))).rejects.toMatchObject({ vendorId: 'r1' });
  });
});

describe("Google's images", () => {
  const usageMetadata = {
    promptTokenCount: 1_124,
    candidatesTokenCount: 1_130,
    thoughtsTokenCount: 64,
    promptTokensDetails: [
      { modality: 'TEXT', tokenCount: 4 },
      { modality: 'IMAGE', tokenCount: 1_120 },
    ],
    candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1_120 }],
  };

  test('do not include drafts, and are billed with the reasoning tokens', async () => {
    const drawn = { inlineData: { mimeType: 'image/png', data: BASE64 } };
    const parts = [{ text: 'Here' }, { thought: true, inlineData: { data: 'aaaa' } }, drawn, null];
    server.handler = respondWithJson({ candidates: [{ content: { parts } }], usageMetadata, responseId: 'g1' });
    expect(await makers.google(call({ parameters: { size: '16:9', resolution: '2K' }, images: [picture] }))).toEqual({
      files: [{ kind: 'bytes', bytes: PIXEL }],
      usage: { input: 4, imageInput: 1_120, output: 74, imageOutput: 1_120 },
      vendorId: 'g1',
    });
    const { contents, generationConfig } = JSON.parse(server.requests[0]?.body ?? '');
    expect(contents[0].parts).toEqual([{ text: 'A coin' }, { inlineData: { mimeType: 'image/png', data: BASE64 } }]);
    expect(generationConfig).toEqual({
      responseModalities: ['IMAGE'],
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
    });
  });

  test.each([
    [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }],
    [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }],
  ])('fail with their usage if they violate the content policy: %j', async (body) => {
    const failure = await failureOf('google', respondWithJson({ ...body, usageMetadata }));
    expect(failure).toMatchObject({ code: 'content_policy_violation', deliveredText: undefined });
    expect(failure.usage).toEqual({ input: 4, imageInput: 1_120, output: 74, imageOutput: 1_120 });
  });
});
