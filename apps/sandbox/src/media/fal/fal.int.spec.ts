import { createFalClient, type FalClient } from '@fal-ai/client';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { startSandbox } from '../../sandbox.ts';
import { createImage } from '../files/images.ts';

const KEY = { authorization: 'Key k' };
const KLING = 'fal-ai/kling-video/v2.5-turbo/pro/text-to-video';
const VEO = 'fal-ai/veo3';
const QWEN = 'fal-ai/qwen-image';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: FalClient;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  const places = { 'https://queue.fal.run': '/fal', 'https://rest.fal.ai': '/fal-rest' };
  client = createFalClient({
    credentials: 'k',
    retry: { maxRetries: 0 },
    fetch: (address, init) => {
      const [found] = Object.entries(places).filter(([origin]) => String(address).startsWith(origin));
      return fetch(found ? String(address).replace(found[0], `${sandbox.url}${found[1]}`) : String(address), init);
    },
  });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };

/** Returns the result of a model as untyped data. */
async function made(model: string, input: object) {
  const { request_id: requestId } = await client.queue.submit(model, { input: input as never });
  return (await client.queue.result(model, { requestId })).data as Record<string, never>;
}

interface File {
  readonly url: string;
  readonly content_type: string;
}

async function sizeOf({ url }: File): Promise<readonly [number, number]> {
  const { width, height } = await sharp(Buffer.from(await (await fetch(url)).arrayBuffer())).metadata();
  return [width, height];
}

describe('a client of fal', () => {
  test('waits for a video and receives its status; the video is billed on completion', async () => {
    const states: string[] = [];
    const { data, requestId } = await client.subscribe(VEO, {
      input: { prompt: 'A coin [[sandbox latency=80]]', duration: '4s' },
      pollInterval: 10,
      logs: true,
      onQueueUpdate: ({ status }) => states.push(status),
    });
    // A late poll misses earlier states.
    const told = ['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED'].filter((each) => states.includes(each));
    expect([...new Set(states)]).toEqual(told);
    expect(states.at(-1)).toBe('COMPLETED');
    const file = await fetch(data.video.url);
    expect(file.headers.get('content-type')).toBe('video/mp4');
    expect(Buffer.from(await file.arrayBuffer()).toString('latin1', 4, 8)).toBe('ftyp');
    const [line] = (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as readonly object[];
    const units = { unit: 'second', quantity: 4, per: 1 };
    expect(line).toMatchObject({ id: requestId, model: VEO, units, usd: '1.6' }); // with audio, which is the default
  });

  test('receives the final status from a stream', async () => {
    const input = { prompt: 'A coin [[sandbox latency=40]]', duration: '5' as const };
    const { request_id: requestId } = await client.queue.submit(KLING, { input });
    const stream = await client.queue.streamStatus(KLING, { requestId });
    expect(await stream.done()).toMatchObject({ status: 'COMPLETED', metrics: { inference_time: 0.1 } });
  });

  test('uploads the image of a request, and cancels a request in the queue', async () => {
    const image_url = new Blob([new Uint8Array(createImage({ seed: 'a', width: 4, height: 4 }))], {
      type: 'image/png',
    });
    const input = { prompt: 'A coin [[sandbox latency=600000]]', image_url };
    const model = 'fal-ai/kling-video/v2.5-turbo/pro/image-to-video';
    const { request_id: requestId, status } = await client.queue.submit(model, { input });
    expect(status).toBe('IN_QUEUE');
    await expect(client.queue.result(model, { requestId })).rejects.toMatchObject({ status: 400 });
    await client.queue.cancel(model, { requestId });
    await expect(client.queue.status(model, { requestId })).rejects.toMatchObject({ status: 404 });
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('receives an error for an invalid field as the result', async () => {
    const failed = made(VEO, { prompt: 'A coin', duration: '5' });
    await expect(failed).rejects.toMatchObject({
      name: 'ValidationError',
      status: 422,
      body: { detail: [{ loc: ['body', 'duration'], type: 'literal_error' }] },
    });
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test.each([
    ['policy', 422, { detail: [{ loc: ['body', 'prompt'], type: 'content_policy_violation' }] }, 0],
    ['policy_billed', 422, { detail: [{ type: 'content_policy_violation' }] }, 1],
    ['error', 500, { error_type: 'internal_error' }, 0],
  ])('receives the fault %s as the result', async (fault, status, body, lines) => {
    const failed = made(QWEN, { prompt: `[[sandbox fault=${fault}]]` });
    await expect(failed).rejects.toMatchObject({ status, body });
    expect(await bill()).toMatchObject({ lines });
  });

  test.each([
    ['429', 429],
    ['500', 500],
    ['overloaded', 503],
  ])('receives the fault %s as the response to its request, with an error type', async (fault, status) => {
    const refused = await fetch(`${sandbox.url}/fal/${QWEN}`, {
      method: 'POST',
      headers: KEY,
      body: JSON.stringify({ prompt: `[[sandbox fault=${fault}]]` }),
    });
    expect(refused.status).toBe(status);
    const { error_type } = (await refused.json()) as { error_type: string };
    expect(refused.headers.get('x-fal-error-type')).toBe(error_type);
  });
});

describe('a model', () => {
  test.each<[string, object, readonly [number, number], string]>([
    ['fal-ai/ideogram/v3', { image_size: 'landscape_16_9', rendering_speed: 'TURBO' }, [1_024, 576], '0.03'],
    ['fal-ai/ideogram/v3', { aspect_ratio: '16:9' }, [1_024, 1_024], '0.06'], // ignored: the model has no such field
    [QWEN, { image_size: { width: 640, height: 480 }, num_images: 2 }, [640, 480], '0.04'],
    [QWEN, {}, [1_024, 768], '0.02'],
    ['fal-ai/recraft/v3/text-to-image', { image_size: 'portrait_4_3' }, [768, 1_024], '0.04'],
    ['fal-ai/bytedance/seedream/v4.5/text-to-image', { image_size: 'auto_4K', max_images: 3 }, [4_096, 4_096], '0.12'],
    [
      'fal-ai/nano-banana-2',
      { aspect_ratio: '16:9', resolution: '2K', enable_web_search: true },
      [2_720, 1_530],
      '0.135',
    ],
    ['fal-ai/nano-banana-pro/edit', { image_urls: ['https://x.example/a.png'], num_images: 3 }, [1_024, 1_024], '0.45'],
    ['fal-ai/imagen4/preview', { aspect_ratio: '3:4', output_format: 'webp' }, [885, 1_180], '0.04'],
  ])('%s with %j generates images of the expected size and price', async (model, input, size, usd) => {
    const { images } = (await made(model, { prompt: 'A coin', ...input })) as unknown as { images: readonly File[] };
    for (const each of images) expect(await sizeOf(each)).toEqual(size);
    expect(await bill()).toEqual({ total_usd: usd, lines: 1 });
  });

  test('for image editing can return the result inline, and rejects data that is not an image', async () => {
    const bytes = createImage({ seed: 'a', width: 4, height: 4 });
    const image_url = `data:image/png;base64,${bytes.toString('base64')}`;
    const { image } = (await made('fal-ai/recraft/upscale/crisp', { image_url, sync_mode: true })) as unknown as {
      image: File;
    };
    expect(image.url).toMatch(/^data:image\/png;base64,/);
    const nothing = { image_url: 'data:image/png;base64,AAAA' };
    const refused = made('fal-ai/bria/background/remove', nothing);
    await expect(refused).rejects.toMatchObject({ body: { detail: [{ type: 'image_load_error' }] } });
  });

  test('for videos is priced by audio and resolution', async () => {
    await made(VEO, { prompt: 'A coin', duration: '6s', generate_audio: false });
    await made('fal-ai/wan-25-preview/text-to-video', { prompt: 'A coin' });
    expect(await bill()).toEqual({ total_usd: '1.95', lines: 2 }); // 6 × 0.20, and 5 × 0.15 for the default of 1080p
  });
});

describe('a file', () => {
  const fetched = async (fault: string, how: RequestInit = {}) => {
    const { images } = (await made(QWEN, { prompt: `[[sandbox fault=${fault}]]` })) as unknown as {
      images: readonly File[];
    };
    return fetch(images[0]?.url ?? '', how);
  };

  test.each([
    ['html', 'text/html; charset=utf-8', /^<!DOCTYPE html>/],
    ['svg', 'image/svg+xml', /^<svg/],
    ['exe', 'application/x-msdownload', /^MZ/],
    ['disguised_html', 'image/png', /^<!DOCTYPE html>/],
    ['disguised_exe', 'image/png', /^MZ/],
  ])('may have another type or content than expected: %s', async (fault, type, start) => {
    const file = await fetched(fault);
    expect(file.headers.get('content-type')).toBe(type);
    expect(Buffer.from(await file.arrayBuffer()).toString('latin1')).toMatch(start);
  });

  test('may have expired, redirect, be interrupted, or be too large', async () => {
    expect((await fetched('expired')).status).toBe(404);
    const astray = await fetched('astray', { redirect: 'manual' });
    expect([astray.status, astray.headers.get('location')]).toEqual([
      302,
      expect.stringContaining('//169.254.169.254/'),
    ]);
    const leaving = new AbortController();
    const stalled = await fetched('stalled', { signal: leaving.signal });
    setTimeout(() => leaving.abort(), 100);
    await expect(stalled.arrayBuffer()).rejects.toThrow('aborted');
    await expect((await fetched('broken')).arrayBuffer()).rejects.toThrow('terminated');
    expect((await (await fetched('truncated')).arrayBuffer()).byteLength).toBeGreaterThan(0);
    const large = await fetched('too_large');
    let size = 0;
    for await (const piece of large.body ?? []) {
      size += piece.length;
      if (size > 40_000_000) break; // disconnects
    }
    expect(size).toBeGreaterThan(40_000_000);
  });

  test('may be missing among the requested ones, and is then not billed', async () => {
    const { images } = (await made(QWEN, { prompt: '[[sandbox fault=fewer]]', num_images: 3 })) as unknown as {
      images: unknown[];
    };
    expect(images).toHaveLength(2);
    expect(await bill()).toEqual({ total_usd: '0.04', lines: 1 });
  });
});

test('a request is billed even if its response is lost', async () => {
  const body = JSON.stringify({ prompt: '[[sandbox fault=lost]]' });
  const lost = fetch(`${sandbox.url}/fal/${QWEN}`, { method: 'POST', headers: KEY, body }); // fal's client would retry
  await expect(lost).rejects.toThrow('fetch failed');
  expect(await bill()).toEqual({ total_usd: '0.02', lines: 1 });
});

test.each([
  ['a request to an unknown application', 'fal-ai/none', KEY, 404],
  ['a request without a key', QWEN, {}, 401],
])('%s is rejected', async (_, model, headers, status) => {
  const answer = await fetch(`${sandbox.url}/fal/${model}`, { method: 'POST', headers, body: '{"prompt":"a"}' });
  expect(answer.status).toBe(status);
});
