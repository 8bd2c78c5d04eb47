/**
 * The contract gate of images, audio, videos and data lookups: requests with all that customers can set, to every endpoint of
 * the catalogue. What connectors and the sandbox send must agree with the contracts of the providers, apart from the listed
 * deviations, each of which must occur.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { isMediaModel, type MediaModel, readCatalogue, toDataPath } from '#catalogue';
import type { JsonObject } from '#kernel';
import {
  ContractGate,
  createAudioFile,
  createForm,
  MEDIA_DEVIATIONS,
  PIXEL,
  sampleCases,
  type TestAccount,
  type TestResponse,
  TestWorld,
} from '#testing';

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.openWithSagas({ RATE_LIMIT_PER_MINUTE: '0', REFUSED_PROMPTS_PER_HOUR: '1000' });
  account = await world.createAccount(1_050);
});
afterAll(() => world.close());

const IMAGE = `data:image/png;base64,${PIXEL.toString('base64')}`;
const served = readCatalogue()
  .models.filter(isMediaModel)
  .flatMap((model: MediaModel) => model.endpoints.map((endpoint) => ({ model, endpoint })));
type Served = (typeof served)[number];

const listServed = (type: MediaModel['type'], capability?: RegExp) =>
  served.filter(
    ({ model }) => model.type === type && (!capability || model.capabilities.some((one) => capability.test(one))),
  );

/**
 * Returns requests that together have each value of each choice of a model. Unless all cases are tested, it is one request,
 * with other values for each index of an endpoint.
 */
function listChoices({ model, endpoint }: Served, index: number): readonly object[] {
  const choices = Object.entries(model.choices ?? {}).filter(([name]) => endpoint.parameters.includes(name));
  const length = Math.max(1, ...choices.map(([, values]) => values.length));
  const indexes = Array.from({ length }, (_, i) => i);
  return sampleCases(indexes, 1, index).map((i) => ({
    model: model.id,
    provider: { only: [endpoint.slug] },
    ...Object.fromEntries(choices.map(([name, values]) => [name, values[i % values.length]])),
  }));
}

function expectSuccess(response: TestResponse, request: object): TestResponse {
  expect([request, response.status, response.status < 300 ? '' : response.text]).toEqual([
    request,
    response.status,
    '',
  ]);
  return response;
}

const sendAll = (path: string, requests: readonly object[]) =>
  Promise.all(requests.map(async (body) => expectSuccess(await world.post(path, body, account), body)));

test('images', async () => {
  const options = {
    background: 'opaque',
    moderation: 'low',
    output_format: 'jpeg',
    output_compression: 50,
    user: 'someone',
    prompt: 'A coin',
    negative_prompt: 'people',
    seed: 7,
  };
  const requests = listServed('image', /text_to_image/).flatMap((one, index) =>
    listChoices(one, index).map((body, i) => ({ ...body, ...options, ...((index + i) % 2 === 0 ? { n: 2 } : {}) })),
  );
  await sendAll('/v1/images/generations', requests);
});

test('images from an image', async () => {
  const bodies = served
    .filter(({ model }) => model.type === 'image' && model.inputs.includes('image'))
    .flatMap(listChoices);
  await sendAll(
    '/v1/images/generations',
    bodies.map((body) => ({ ...body, prompt: 'A coin', image_url: IMAGE })),
  );
  const form = createForm({
    model: 'openai/gpt-image-1-mini',
    prompt: 'A coin',
    image: pixelFile(),
    mask: pixelFile(),
  });
  const headers = { authorization: `Bearer ${account.apiKey}` };
  expectSuccess(await world.send('POST', '/v1/images/edits', { body: form, headers }), {});
});

const pixelFile = () => new File([new Uint8Array(PIXEL)], 'pixel.png', { type: 'image/png' });

test('failed and rejected images', async () => {
  const perProvider = [
    ...new Map(listServed('image', /text_to_image/).map((one) => [one.endpoint.upstream, one])).values(),
  ];
  const faults = ['400', '429', '500', 'overloaded', 'policy', 'fewer'];
  const requests = perProvider.flatMap(({ model, endpoint }, i) =>
    sampleCases(faults, 2, i).map((fault) => {
      return { model: model.id, provider: { only: [endpoint.slug] }, prompt: `[[sandbox fault=${fault}]]` };
    }),
  );
  await Promise.all(requests.map((body) => world.post('/v1/images/generations', body, account)));
});

/** Only the first video of an endpoint is made, because making one takes time. */
test('videos', async () => {
  const options = { negative_prompt: 'people', seed: 7 };
  const submitted = await sendAll(
    '/v1/videos',
    listServed('video').flatMap((one, index) =>
      listChoices(one, index).map((body, i) => ({
        ...body,
        ...options,
        prompt: i === 0 ? 'A harbour' : '[[sandbox fault=error]]',
        ...(one.model.inputs.includes('image') ? { image_url: IMAGE } : {}),
      })),
    ),
  );
  const failing = await Promise.all(
    ['google/veo-3', 'kling/kling-2.5-turbo'].flatMap((model) =>
      ['400', 'policy', 'error'].map((fault) =>
        world.post('/v1/videos', { model, prompt: `[[sandbox fault=${fault}]]` }, account),
      ),
    ),
  );
  const ids = [...submitted, ...failing].flatMap(({ body }) => (typeof body.id === 'string' ? [body.id] : []));
  for (const id of ids)
    await world.waitUntil(async () => (await world.get(`/v1/videos/${id}`, account)).status !== 202);
});

test('speech', async () => {
  const formats = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'];
  const options = [
    ...formats.map((response_format) => ({ response_format, language: 'de' })),
    { speed: 1.1, voice: '' },
  ];
  const speaking = listServed('audio').filter(({ model }) => model.inputs.includes('text'));
  const bodies = speaking.flatMap(({ model }, i) =>
    sampleCases(options, 2, i).map((fields) => ({ model: model.id, input: 'Hello', ...fields })),
  );
  await sendAll('/v1/audio/speech', bodies);
  const failing = speaking.flatMap(({ model }, i) =>
    sampleCases(['400', '429', '500', 'overloaded', 'policy'], 1, i).map((fault) => ({
      model: model.id,
      input: `[[sandbox fault=${fault}]]`,
    })),
  );
  await Promise.all(failing.map((body) => world.post('/v1/audio/speech', body, account)));
});

test('transcriptions', async () => {
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const transcribe = (fields: Readonly<Record<string, string>>, directive = '') => {
    const file = new File([new Uint8Array(createAudioFile('mp3', { seconds: 2, directive }))], 'a.mp3');
    return world.send('POST', '/v1/audio/transcriptions', { body: createForm({ ...fields, file }), headers });
  };
  const options: readonly Readonly<Record<string, string>>[] = [
    { language: 'de', prompt: 'Coins', temperature: '0.2', response_format: 'verbose_json' },
    { language: 'multi' },
  ];
  const faults = ['400', '429', '500', 'overloaded', 'policy'];
  const models = listServed('audio').flatMap(({ model }) => (model.inputs.includes('audio') ? [model.id] : []));
  const sendOptions = models.flatMap((model) =>
    options.map(async (fields) => expectSuccess(await transcribe({ model, ...fields }), fields)),
  );
  const sendFaults = models.flatMap((model, i) =>
    sampleCases(faults, 2, i).map((fault) => transcribe({ model }, `[[sandbox fault=${fault}]]`)),
  );
  await Promise.all([...sendOptions, ...sendFaults]);
});

interface ParameterSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, ParameterSchema>>;
  readonly items?: ParameterSchema;
}

/** Returns a value of a parameter of a lookup. */
function sampleValue({ type, enum: choices, minimum, properties, items }: ParameterSchema): unknown {
  if (choices) return choices[0];
  switch ([type].flat()[0]) {
    case 'string':
      return 'abacus';
    case 'integer':
    case 'number':
      return minimum ?? 1;
    case 'array':
      return items ? [sampleValue(items)] : [];
    case 'object':
      return sampleFields(properties);
    default:
      return true;
  }
}

/** Texts with a pattern are left out. */
function sampleFields(properties: ParameterSchema['properties'] = {}): Readonly<Record<string, unknown>> {
  const entries = Object.entries(properties).filter(([, { pattern }]) => pattern === undefined);
  return Object.fromEntries(entries.map(([name, schema]) => [name, sampleValue(schema)]));
}

type DataEntry = ReturnType<typeof readCatalogue>['dataEndpoints'][number];

function lookUp(entry: DataEntry, fields: JsonObject): Promise<TestResponse> {
  const path = `/v1${toDataPath(entry)}`;
  const headers = { authorization: `Bearer ${account.apiKey}` };
  if (entry.method === 'POST') return world.send('POST', path, { headers, body: fields });
  const search = new URLSearchParams(
    Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]),
  );
  return world.send('GET', `${path}?${search}`, { headers });
}

test('data lookups', async () => {
  const lookups = readCatalogue().dataEndpoints.flatMap((entry, i) => {
    const { oneOf, properties } = (entry.parameters ?? {}) as ParameterSchema & { readonly oneOf?: unknown };
    const example = entry.example as JsonObject;
    const all = oneOf === undefined ? sampleFields(properties) : {};
    return sampleCases([example, { ...all, ...example }], 1, i).map((fields) => ({ entry, fields }));
  });
  const responses = await Promise.all(lookups.map(({ entry, fields }) => lookUp(entry, fields)));
  for (const [i, { entry, fields }] of lookups.entries())
    expectSuccess(responses[i] as TestResponse, { path: toDataPath(entry), fields });
});

test('failed data lookups', async () => {
  const faults = ['empty', '400', '404', '422', '429', '500', '503', '401', '402', '403'];
  const perProvider = new Map(readCatalogue().dataEndpoints.map((entry) => [entry.upstream, entry]));
  await Promise.all(
    [...perProvider].map(async ([upstream, entry], i) => {
      for (const fault of sampleCases(faults, 2, i)) {
        const body = JSON.stringify({ directive: `[[sandbox fault=${fault}]]` });
        await fetch(`${world.sandbox}/data-vendors/${upstream}`, { method: 'PUT', body });
        await lookUp(entry, entry.example as JsonObject);
      }
    }),
  );
});

/** Providers of data without a schema of their messages. */
const WITHOUT_CONTRACT = [
  'clado',
  'company-enrich',
  'influencers-club',
  'minerva',
  'scrape-creators',
  'twit',
  'whitepages',
];

test('there are contracts for all requests but those to some data providers', () => {
  const { uncompared } = world.contracts;
  const lookups = readCatalogue().dataEndpoints.filter(({ upstream, path }) => uncompared.has(`/${upstream}${path}`));
  expect([...new Set(lookups.map(({ upstream }) => upstream))].sort()).toEqual(WITHOUT_CONTRACT);
  const ofMedia =
    /^\/fal\/[^.]|\/(images|audio|text-to-speech|listen|speak)(\/|$)|:(generateContent|predictLongRunning)$/;
  expect([...uncompared].filter((path) => ofMedia.test(path))).toEqual([]);
});

test('nothing deviates from the contracts beyond the list', () => world.contracts.assertNone());

test('every listed deviation occurs', () => {
  const { occurred } = world.contracts;
  expect(MEDIA_DEVIATIONS.filter((listed) => !occurred.has(listed))).toEqual([]);
});

test('a field that a connector adds to a body, a form or a query is a deviation', () => {
  const gate = new ContractGate();
  const answered = { status: 200, responseBody: '' };
  const body = JSON.stringify({ prompt: 'A harbour', colour: 'red' });
  gate.check({ path: '/fal/fal-ai/veo3', requestBody: body, ...answered });
  const form = '--b\r\ncontent-disposition: form-data; name="colour"\r\n\r\nred\r\n--b--\r\n';
  gate.check({ path: '/openai/v1/audio/transcriptions', requestBody: form, ...answered });
  gate.check({ path: '/deepgram/v1/listen', query: 'model=nova-3&colour=red', requestBody: '', ...answered });
  expect([...gate.deviations.keys()]).toEqual([
    'fal fal-ai/veo3Request: unknown field colour',
    'openai transcriptionsRequest: missing field file',
    'openai transcriptionsRequest: missing field model',
    'openai transcriptionsRequest: unknown field colour',
    'deepgram listenQuery: unknown field colour',
  ]);
});
