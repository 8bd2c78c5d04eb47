import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import sharp from 'sharp';
import { createImage } from '../../media/files/images.ts';
import { startSandbox } from '../../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: OpenAI;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new OpenAI({ apiKey: 'k', baseURL: `${sandbox.url}/openai/v1`, maxRetries: 0 });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const model = 'gpt-image-1.5';
const openedFrom = async ({ data }: OpenAI.ImagesResponse, i = 0) =>
  sharp(Buffer.from(data?.[i]?.b64_json ?? '', 'base64')).metadata();

describe("OpenAI's images", () => {
  test.each(['png', 'jpeg', 'webp'] as const)('are files in the requested format: %s', async (output_format) => {
    const prompt = 'A coin on snow';
    const made = await client.images.generate({
      model,
      prompt,
      n: 2,
      quality: 'low',
      size: '1536x1024',
      output_format,
    });
    expect(made.data).toHaveLength(2);
    expect(await openedFrom(made, 1)).toMatchObject({ format: output_format, width: 1_536, height: 1_024 });
    expect(made).toMatchObject({ quality: 'low', size: '1536x1024', output_format });
  });

  test('are billed by the tokens of the usage', async () => {
    const made = await client.images.generate({ model, prompt: 'A coin on snow', n: 3, quality: 'medium' });
    expect(made.usage).toEqual({
      input_tokens: 4,
      input_tokens_details: { text_tokens: 4, image_tokens: 0 },
      output_tokens: 3_168,
      output_tokens_details: { text_tokens: 0, image_tokens: 3_168 },
      total_tokens: 3_172,
    });
    expect(await bill()).toEqual({ total_usd: '0.101396', lines: 1 }); // 4 × 5 and 3,168 × 32 USD per million tokens
  });

  test('are edited with a mask and several images; the tokens of the images are counted', async () => {
    const file = () => toFile(createImage({ seed: 'a', width: 8, height: 8 }), 'a.png', { type: 'image/png' });
    const image = [await file(), await file()];
    const asked = { model, prompt: 'Two coins', quality: 'low' as const, mask: await file() };
    const edited = await client.images.edit({ ...asked, image });
    expect(await openedFrom(edited)).toMatchObject({ format: 'png', width: 1_024 });
    expect(edited.usage?.input_tokens_details).toEqual({ text_tokens: 3, image_tokens: 388 });
    const closely = await client.images.edit({ ...asked, image: await file(), input_fidelity: 'high' });
    expect(closely.usage?.input_tokens_details?.image_tokens).toBe(4_290);
  });

  test('may have sizes with gpt-image-2 that gpt-image-1.5 rejects', async () => {
    const made = await client.images.generate({
      model: 'gpt-image-2',
      prompt: 'A coin',
      size: '2048x1152',
      quality: 'low',
    });
    expect(await openedFrom(made)).toMatchObject({ width: 2_048, height: 1_152 });
    expect(made.usage?.output_tokens).toBe(612); // 272 for 1024 × 1024 pixels
    for (const size of ['1000x1000', '4096x2160', '3200x1024', '0x0'] as const)
      await expect(client.images.generate({ model: 'gpt-image-2', prompt: 'a', size })).rejects.toMatchObject({
        param: 'size',
      });
    await expect(client.images.generate({ model, prompt: 'a', size: '2048x1152' })).rejects.toMatchObject({
      param: 'size',
    });
  });

  test.each<[string, object, object]>([
    ['an unknown model', { model: 'dall-e-9' }, { param: 'model' }],
    ['a model that has been shut down', { model: 'gpt-image-1' }, { param: 'model' }],
    ['an unknown field', { ratio: '1:1' }, { param: 'ratio', code: 'unknown_parameter' }],
    ['a response format', { response_format: 'b64_json' }, { param: 'response_format', code: 'unknown_parameter' }],
    ['a ratio as the size', { size: '16:9' }, { param: 'size', code: 'invalid_value' }],
    ['too many images', { n: 11 }, { param: 'n' }],
    ['no prompt', { prompt: undefined }, { param: 'prompt' }],
    ['forbidden content', { prompt: '[[sandbox fault=policy]]' }, { code: 'moderation_blocked' }],
  ])('are rejected for %s without a charge', async (_, more, error) => {
    const refused = client.images.generate({ model, prompt: 'a', ...more });
    await expect(refused).rejects.toMatchObject({ status: 400, ...error });
    expect(await bill()).toEqual({ total_usd: '0', lines: 0 });
  });

  test('are not edited if the file is not an image', async () => {
    const image = await toFile(Buffer.from('no image'), 'a.png');
    const refused = client.images.edit({ model, prompt: 'a', image });
    await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_image_file' });
  });

  test('may be fewer than requested, and the usage then counts the generated ones', async () => {
    const made = await client.images.generate({ model, prompt: '[[sandbox fault=fewer]]', n: 2, quality: 'high' });
    expect(made.data).toHaveLength(1);
    expect(made.usage?.output_tokens).toBe(4_160);
  });

  test.each([
    ['lost', 1],
    ['cut', 1],
    ['malformed', 0],
    ['500', 0],
    ['policy_billed', 1],
  ])('are billed as the fault specifies if they do not arrive: %s', async (fault, lines) => {
    await expect(client.images.generate({ model, prompt: `[[sandbox fault=${fault}]]` })).rejects.toThrow();
    expect(await bill()).toMatchObject({ lines });
  });

  test('may be files of another type than requested', async () => {
    const { data } = await client.images.generate({ model, prompt: '[[sandbox fault=svg]]' });
    expect(Buffer.from(data?.[0]?.b64_json ?? '', 'base64').toString()).toMatch(/^<svg/);
  });
});

describe("DeepInfra's images", () => {
  const flux = 'black-forest-labs/FLUX-1-schnell';
  const generate = (more: object) => {
    const deepInfra = new OpenAI({ apiKey: 'k', baseURL: `${sandbox.url}/deepinfra/v1`, maxRetries: 0 });
    return deepInfra.images.generate({ model: flux, prompt: 'A coin', ...more });
  };

  test('are JPEGs of the requested size, billed by the image', async () => {
    const made = await generate({ n: 2, size: '768x1280' });
    expect(await openedFrom(made as OpenAI.ImagesResponse)).toMatchObject({
      format: 'jpeg',
      width: 768,
      height: 1_280,
    });
    expect(await bill()).toEqual({ total_usd: '0.001', lines: 1 });
  });

  test.each<[string, object, number]>([
    ['too many images', { n: 5 }, 422],
    ['an invalid size', { size: '1:1' }, 422],
    ['a URL instead of the image', { response_format: 'url' }, 422],
    ['an unknown model', { model: 'x' }, 404],
    ['forbidden content', { prompt: '[[sandbox fault=policy]]' }, 400],
  ])('are rejected for %s without a charge', async (_, more, status) => {
    await expect(generate(more)).rejects.toMatchObject({ status });
    expect(await bill()).toMatchObject({ lines: 0 });
  });
});
