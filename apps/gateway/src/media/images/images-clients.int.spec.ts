import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateImage } from 'ai';
import OpenAI, { APIError, toFile } from 'openai';
import sharp from 'sharp';
import { PIXEL, type TestAccount, TestWorld } from '#testing';

const GPT = 'openai/gpt-image-1.5';
const BANANA = 'google/nano-banana-2';

let world: TestWorld;
let account: TestAccount;
let settings: { readonly apiKey: string; readonly baseURL: string };
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(10.5);
  settings = { apiKey: account.apiKey, baseURL: `${world.api}/v1` };
});
afterAll(() => world.close());

async function decoded(bytes: Uint8Array | ArrayBuffer) {
  const { format, width = 0, height = 0 } = await sharp(bytes).metadata();
  return { format, isWide: width > height };
}

const picture = () => toFile(PIXEL, 'pixel.png');

describe("OpenAI's client", () => {
  let client: OpenAI;
  beforeAll(() => {
    client = new OpenAI({ ...settings, maxRetries: 0 });
  });

  test('generates images, by default as URLs and in base64, with the usage', async () => {
    const request = { model: GPT, prompt: 'A coin', n: 2, size: '1536x1024', quality: 'low' } as const;
    const { data = [], usage, ...rest } = await client.images.generate(request);
    expect(data).toHaveLength(2);
    for (const { url = '', b64_json = '' } of data) {
      const opened = Buffer.from(await (await fetch(url)).arrayBuffer());
      expect(opened.toString('base64')).toBe(b64_json);
      expect(await decoded(opened)).toEqual({ format: 'png', isWide: true });
    }
    expect(rest).toMatchObject({ size: '1536x1024', quality: 'low', background: 'opaque', output_format: 'png' });
    const { input_tokens = 0, output_tokens = 0, total_tokens, input_tokens_details } = usage ?? {};
    expect([input_tokens, total_tokens]).toEqual([2, input_tokens + output_tokens]);
    expect([input_tokens_details, output_tokens > 0]).toEqual([{ text_tokens: 2, image_tokens: 0 }, true]);
  });

  test('generates images as URLs only on request and with models of other providers', async () => {
    for (const request of [{ model: GPT, response_format: 'url' } as const, { model: BANANA }]) {
      const { data = [] } = await client.images.generate({ prompt: 'A coin', ...request });
      expect(data.map(Object.keys)).toEqual([['url', 'content_type']]);
    }
  });

  test('receives images in base64 in the requested format', async () => {
    const wanted = { model: GPT, prompt: 'A coin', response_format: 'b64_json', output_format: 'webp' } as const;
    const { data = [] } = await client.images.generate(wanted);
    expect(await decoded(Buffer.from(data[0]?.b64_json ?? '', 'base64'))).toEqual({ format: 'webp', isWide: false });
  });

  test('receives an event with base64 for each image of a stream, even if response_format is url', async () => {
    const made = { model: GPT, prompt: 'A coin', n: 2, stream: true, partial_images: 1 } as const;
    const edited = { model: GPT, prompt: 'A coin', image: await picture(), stream: true } as const;
    const streams = [
      await client.images.generate({ ...made, response_format: 'url' }),
      await client.images.edit(edited),
    ];
    const seen: unknown[] = [];
    for (const stream of streams) {
      for await (const event of stream) {
        const { format } = await decoded(Buffer.from(event.b64_json, 'base64'));
        seen.push([event.type, event.type.endsWith('.completed') && event.output_format, format]);
        expect(event).toMatchObject({ size: '1024x1024', quality: 'medium', background: 'opaque' });
        const { input_tokens = 0, output_tokens = 0, total_tokens = 0 } = 'usage' in event ? event.usage : {};
        expect([output_tokens > 0, total_tokens]).toEqual([true, input_tokens + output_tokens]);
      }
    }
    const generated = ['image_generation.completed', 'png', 'png'];
    expect(seen).toEqual([generated, generated, ['image_edit.completed', 'png', 'png']]);
  });

  test('receives the events of a provider that reports nothing about an image in the same form', async () => {
    const request = { model: BANANA, prompt: 'A coin', stream: true, provider: { only: ['fal'] } } as const;
    for await (const event of await client.images.generate(request)) {
      const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
      expect(event).toMatchObject({ size: 'auto', quality: 'auto', background: 'auto', output_format: 'png', usage });
    }
  });

  test('edits an image with a mask, and can send several images', async () => {
    const mask = await picture();
    for (const image of [await picture(), [await picture(), await picture()]]) {
      const { data = [] } = await client.images.edit({ model: GPT, image, mask, prompt: 'At night', quality: 'low' });
      expect(await decoded(Buffer.from(data[0]?.b64_json ?? '', 'base64'))).toMatchObject({ format: 'png' });
    }
  });

  test('throws an APIError for a rejected prompt and for an invalid size', async () => {
    const refused = { model: BANANA, prompt: '[[sandbox fault=policy]]' };
    const error = await client.images.generate(refused).catch((each) => each);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ status: 400, type: 'content_policy_violation', code: 'content_policy_violation' });
    const wide = { model: BANANA, prompt: 'A coin', size: 'wide' as '1024x1024' };
    expect(await client.images.generate(wide).catch((each) => each)).toMatchObject({ status: 400, param: 'size' });
  });
});

describe("Vercel's AI SDK", () => {
  test.each([
    ['@ai-sdk/openai', () => createOpenAI(settings).image(GPT)],
    ['@ai-sdk/openai and an alias', () => createOpenAI(settings).image('gpt-image-1.5')],
    ['@ai-sdk/openai-compatible', () => createOpenAICompatible({ name: 'house', ...settings }).imageModel(GPT)],
  ])('generates and edits images with %s', async (_, model) => {
    const asked = { model: model(), prompt: 'A coin', size: '1024x1536' as const, maxRetries: 0 };
    const { images } = await generateImage({ ...asked, n: 2 });
    expect(images).toHaveLength(2);
    for (const { uint8Array, mediaType } of images) {
      expect([mediaType, await decoded(uint8Array)]).toEqual(['image/png', { format: 'png', isWide: false }]);
    }
    const { image } = await generateImage({ ...asked, prompt: { text: 'At night', images: [PIXEL] } });
    expect(await decoded(image.uint8Array)).toMatchObject({ format: 'png' });
  });
});
