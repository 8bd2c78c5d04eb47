import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { MAX_SAVED_BYTES } from '#application';
import { createForm, PIXEL, sampleCases, type TestAccount, TestWorld } from '#testing';

const BANANA = 'google/nano-banana-2';
const FLUX = 'black-forest-labs/flux-1.1-pro';
const SCHNELL = 'black-forest-labs/flux-1-schnell';
const ONE_AT_A_TIME = 'recraft/recraft-v3';
const GPT = 'openai/gpt-image-1-mini';
const UPSCALE = 'recraft/recraft-crisp-upscale';
const KONTEXT = 'black-forest-labs/flux-kontext-pro';
const IMAGE = `data:image/png;base64,${PIXEL.toString('base64')}`;
const FAL = { only: ['fal'] };

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open(async (sandbox) => ({ PRIVATE_SOURCES: sandbox }));
  account = await world.createAccount(105);
});
afterAll(() => world.close());

const generate = (body: object, by = account, path = '/v1/images/generations') =>
  world.post(path, { model: BANANA, prompt: 'A coin', provider: FAL, ...body }, by);

async function edit(fields: Readonly<Record<string, string | File>>, path = '/v1/images/edits') {
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const answer = await fetch(`${world.api}${path}`, { method: 'POST', headers, body: createForm(fields) });
  // biome-ignore lint/suspicious/noExplicitAny: responses of any shape
  return { status: answer.status, body: (await answer.json()) as any };
}

async function pictureOf({ url, b64_json }: { readonly url?: string; readonly b64_json?: string }) {
  const bytes = url ? await (await fetch(url)).arrayBuffer() : Buffer.from(b64_json ?? '', 'base64');
  return sharp(bytes).metadata();
}

describe('POST /v1/images/generations', () => {
  test('returns URLs that open without a credential, and the cost', async () => {
    const before = Math.floor(Date.now() / 1_000) - 1;
    const { status, headers, body, text } = await generate({});
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(headers.get('x-generation-id')).toBe(`gen-${headers.get('x-request-id')}`);
    const url = expect.stringMatching(/\/v1\/media\/gen_[0-9a-z]{38}\/0\?/);
    const data = [{ url, content_type: 'image/png' }];
    expect(body).toEqual({ created: expect.any(Number), model: BANANA, cost: 0.092, data });
    expect(text).toContain('"cost":0.092,');
    expect(body.created).toBeGreaterThanOrEqual(before);
    expect(body.created).toBeLessThanOrEqual(Date.now() / 1_000 + 1);
    const opened = await fetch(body.data[0].url);
    expect([opened.status, opened.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect((await sharp(await opened.arrayBuffer()).metadata()).format).toBe('png');
    const [record] = (await world.get('/queries/history', account)).body.data;
    const counted = {
      query_type: 'image_generation',
      model: BANANA,
      price_in_usd: 0.092,
      output_count: 1,
      output_unit: 'images',
    };
    expect(record).toMatchObject(counted);
  });

  test('returns images in base64 on request', async () => {
    const { body } = await generate({ response_format: 'b64_json', n: 2, model: SCHNELL, provider: null });
    const each = { b64_json: expect.any(String), content_type: expect.stringMatching(/^image\//) };
    expect(body.data).toEqual([each, each]);
    expect((await pictureOf(body.data[1])).width).toBeGreaterThan(0);
  });

  test.each<[object, string]>([
    [{}, '1:1'],
    [{ size: '16:9' }, '16:9'],
    [{ aspect_ratio: '9:16' }, '9:16'],
    [{ size: '1792x1024' }, '16:9'],
    [{ size: 'auto' }, '1:1'],
    [{ size: '1:1', aspect_ratio: '4:3' }, '4:3'],
  ])('applies the aspect ratio of %j', async (said, ratio) => {
    const { body } = await generate({ ...said });
    const { width, height } = await pictureOf(body.data[0]);
    const [w = 0, h = 0] = ratio.split(':').map(Number);
    expect(Math.abs(width / height / (w / h) - 1)).toBeLessThan(0.05);
  });

  test('generates the number of images in num_images with a model that generates one per call', async () => {
    const before = (await world.listEvents(account)).length;
    const { body } = await generate({ model: ONE_AT_A_TIME, num_images: 3 });
    expect([body.data.length, body.cost]).toEqual([3, 0.138]);
    const facts = (await world.listEvents(account)).slice(before);
    expect(facts.map(({ type }) => type)).toEqual(['FundsHeld', 'HoldSettled']);
    const [, settled] = facts;
    if (settled?.type !== 'HoldSettled') throw new Error('not settled');
    expect(settled.data.charge.items.map(({ usage }) => usage)).toEqual(Array(3).fill({ image: 1 }));
    expect(new Set(settled.data.charge.items.map(({ vendorId }) => vendorId)).size).toBe(3);
  });

  test('ignores options that the model does not have', async () => {
    const more = { negative_prompt: 'rust', quality: 'high', style: 'vivid', background: 'opaque', stream: true, n: 1 };
    expect((await generate(more)).status).toBe(200);
    const { status, body } = await generate({ model: UPSCALE, image_url: IMAGE, n: 4, size: 'huge', prompt: null });
    expect([status, body.data.length, body.cost]).toEqual([200, 1, 0.0046]);
  });

  test('returns the requested format if the provider supports it, else the format of the provider', async () => {
    const { body } = await generate({ output_format: 'webp' });
    expect(body.data[0].content_type).toBe('image/webp');
    expect((await pictureOf(body.data[0])).format).toBe('webp');
    const kontext = await generate({ model: KONTEXT, image_url: IMAGE, output_format: 'webp' });
    expect([kontext.status, kontext.body.data[0].content_type]).toEqual([200, 'image/jpeg']);
  });

  test('accepts an image as a data URI of several megabytes', async () => {
    const png = await sharp(randomBytes(1_000 * 1_000 * 3), { raw: { width: 1_000, height: 1_000, channels: 3 } })
      .png({ compressionLevel: 0 })
      .toBuffer();
    expect(png.length).toBeGreaterThan(3_000_000);
    const { status } = await generate({ image_url: `data:image/png;base64,${png.toString('base64')}` });
    expect(status).toBe(200);
  });

  test('accepts an image at a URL, and rejects a URL without an image', async () => {
    const headers = { authorization: 'Key k', 'content-type': 'application/json' };
    const body = JSON.stringify({ prompt: 'A note' });
    const queued = await fetch(`${world.sandbox}/fal/fal-ai/imagen4/preview`, { method: 'POST', headers, body });
    const { response_url } = (await queued.json()) as { response_url: string };
    const made = (await (await fetch(response_url, { headers })).json()) as { images: readonly { url: string }[] };
    expect((await generate({ image_url: made.images[0]?.url })).status).toBe(200);
    const { status, body: refusal } = await generate({ image_url: `${world.sandbox}/bill` });
    expect([status, refusal.message]).toEqual([400, 'image_url must be an image: PNG, JPEG or WebP']);
  });

  test('serves the path without /v1 and a model alias, and generates once per Idempotency-Key', async () => {
    expect((await generate({ model: 'nano-banana-2' }, account, '/images/generations')).body.model).toBe(BANANA);
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'an image' };
    const body = { model: FLUX, prompt: 'A coin' };
    const first = await world.send('POST', '/v1/images/generations', { body, headers });
    const before = (await world.listEvents(account)).length;
    const again = await world.send('POST', '/v1/images/generations', { body, headers });
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(await world.listEvents(account)).toHaveLength(before);
  });

  const LARGE_RESPONSES: readonly [string, string, object][] = [
    ['URLs and base64', '/v1/images/generations', {}],
    ['base64', '/v1/images/generations', { response_format: 'b64_json' }],
    ['events', '/v1/images/generations', { stream: true }],
    ['an edit', '/v1/images/edits', { image: '@image' }],
  ];
  test.each(sampleCases(LARGE_RESPONSES, 3, 1))(
    'repeats a response of more than 8 MiB with the same Idempotency-Key: %s',
    async (name, path, more) => {
      const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': `large: ${name}` };
      const fields = { model: GPT, prompt: '[[sandbox bytes=3200000]]', n: 2, quality: 'low', ...more };
      const body = 'image' in more ? createForm({ ...fields, n: '2', image: '@image' }) : fields;
      const send = () => world.send('POST', path, { body, headers });
      const first = await send();
      expect([first.status, first.text.length > MAX_SAVED_BYTES]).toEqual([200, true]);
      const before = (await world.listEvents(account)).length;
      const again = await send();
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
      expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
      expect(again.text === first.text).toBe(true);
      expect(await world.listEvents(account)).toHaveLength(before);
      if (name !== 'base64') return;
      await rm(join(world.foundation.settings.dataDir, 'files'), { recursive: true });
      const lost = await send();
      expect([lost.status, lost.body.error.code]).toEqual([409, 'idempotency_answer_lost']);
      expect(await world.listEvents(account)).toHaveLength(before);
    },
  );

  test.each<[string, RegExp, object]>([
    ['no prompt', /prompt is required/, { prompt: null }],
    ['an empty prompt', /prompt is required/, { prompt: ' ' }],
    ['too long a prompt', /at most 16,000 characters/, { prompt: 'a'.repeat(16_001) }],
    ['five images', /n must be at most 4/, { n: 5 }],
    ['no images', /n must be at least 1/, { n: 0 }],
    ['half an image', /an integer/, { num_images: 1.5 }],
    ['an unsupported ratio', /size must be one of 1:1, 16:9, 9:16, 4:3, 3:4/, { size: '21:9' }],
    ['an invalid ratio', /aspect_ratio must be one of 1:1, 16:9/, { aspect_ratio: 'wide' }],
    ['an unsupported resolution', /resolution must be one of 1K, 2K, 4K/, { resolution: '8K' }],
    [
      'an unsupported quality',
      /quality must be one of medium, low, high/,
      { model: GPT, quality: 'hd', provider: null },
    ],
    ['an unsupported format', /output_format must be one of/, { output_format: 'gif' }],
    ['an unsupported response format', /response_format must be one of/, { response_format: 'binary' }],
    ['a missing required image', /image_url is required/, { model: UPSCALE }],
    ['an invalid image', /image_url must be an image/, { image_url: 'data:image/png;base64,aGVsbG8=' }],
    ['an image that is not in base64', /image_url: A data URI must be/, { image_url: 'data:image/png,hello' }],
    ['an image at a file URL', /image_url must be/, { image_url: 'file:///etc/passwd' }],
    ['a chat model', /its type is chat/, { model: 'openai/gpt-5-mini', provider: null }],
    ['malformed preferences', /provider/, { provider: 5 }],
  ])('rejects %s, and holds nothing', async (_, message, body) => {
    const before = (await world.listEvents(account)).length;
    const answer = await generate(body);
    expect([answer.status, answer.body.error.type]).toEqual([400, 'invalid_request_error']);
    expect(answer.body.message).toMatch(message);
    expect(await world.listEvents(account)).toHaveLength(before);
  });

  test('rejects an unknown model, an unknown key and an account without money', async () => {
    const poor = await world.createAccount();
    expect((await generate({ model: 'nope' })).status).toBe(404);
    expect((await generate({}, { ...poor, apiKey: 'sk-wrong' })).status).toBe(401);
    expect((await generate({}, poor)).status).toBe(402);
  });

  test('rejects an image at a forbidden URL without a charge', async () => {
    const by = await world.createAccount(1.05);
    const { status, body } = await generate({ image_url: 'http://127.0.0.1:9/a.png' }, by);
    expect([status, body.error.param]).toEqual([400, 'image_url']);
    expect(await world.fetchBalance(by)).toBe('1.05');
  });

  test('falls back to another provider if one fails before generating an image', async () => {
    for (const at of ['fal', 'google']) {
      const prompt = `A coin [[sandbox fault=500 at=${at}]]`;
      const { status, body } = await generate({ prompt, provider: null });
      expect([status, body.cost]).toEqual([200, 0.092]);
    }
  });
});

describe('POST /v1/images/edits', () => {
  test('returns images in base64 by default, and with response_format url an image that can be decoded', async () => {
    const fields = {
      model: GPT,
      prompt: 'The same at night',
      image: '@image',
      mask: '@mask',
      n: '2',
      size: '1024x1024',
    };
    const { status, body } = await edit(fields);
    expect([status, Object.keys(body).slice(0, 4)]).toEqual([200, ['created', 'model', 'cost', 'data']]);
    expect(body.data.map(Object.keys)).toEqual(Array(2).fill(['b64_json', 'content_type']));
    expect((await pictureOf(body.data[0])).format).toBe('png');
    const [record] = (await world.get('/queries/history', account)).body.data;
    expect(record).toMatchObject({ query_type: 'image_edit', model: GPT, output_count: 2 });
    const [kept] = (await edit({ ...fields, response_format: 'url' }, '/images/edits')).body.data;
    expect((await pictureOf(kept)).format).toBe('png');
  });

  test('charges the same price as a generation', async () => {
    for (const model of [BANANA, KONTEXT, UPSCALE]) {
      const { body } = await generate({ model, image_url: IMAGE });
      const edited = await edit({ model, prompt: 'A coin', 'image[]': '@image' });
      expect([model, edited.body.cost]).toEqual([model, body.cost]);
    }
  });

  test.each<[string, number, RegExp, Readonly<Record<string, string | File>>]>([
    ['no image', 400, /image/, { model: GPT, prompt: 'A coin' }],
    ['a text as the image', 400, /image/, { model: GPT, prompt: 'A coin', image: 'hello' }],
    [
      'a file that is not an image',
      400,
      /must be an image/,
      { model: GPT, prompt: 'a', image: new File(['hello'], 'a.png') },
    ],
    [
      'a model without image editing',
      400,
      /does not support image editing/,
      { model: FLUX, prompt: 'a', image: '@image' },
    ],
    ['no model', 400, /model/, { prompt: 'A coin', image: '@image' }],
    ['an invalid number', 400, /n must be/, { model: GPT, prompt: 'A coin', image: '@image', n: 'two' }],
  ])('rejects %s, and holds nothing', async (_, status, message, fields) => {
    const before = (await world.listEvents(account)).length;
    const answer = await edit(fields);
    expect([answer.status, answer.body.message]).toEqual([status, expect.stringMatching(message)]);
    expect(await world.listEvents(account)).toHaveLength(before);
  });
});
