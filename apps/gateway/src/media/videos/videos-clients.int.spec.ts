/** Videos with the clients of OpenAI and OpenRouter, which poll them by other words than our own form has. */

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI, { APIError, toFile } from 'openai';
import type { Video, VideoCreateParams } from 'openai/resources/videos';
import { createForm, type TestAccount, TestWorld } from '#testing';
import { createImage } from '../../../../sandbox/src/media/files/images.ts';

const KLING = 'kling/kling-2.5-turbo';
const ANIMATED = `${KLING}-i2v`;
const PICTURE = createImage({ seed: 'a', width: 16, height: 16 });
const IMAGE = `data:image/png;base64,${PICTURE.toString('base64')}`;

let world: TestWorld;
let account: TestAccount;
let openAi: OpenAI;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  account = await world.createAccount(42);
  openAi = new OpenAI({ apiKey: account.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
});
afterAll(() => world.close());

/** Polls like the helpers of OpenAI's clients, which stop at any other word. */
async function poll(submitted: Video): Promise<Video> {
  let video = submitted;
  await world.waitUntil(async () => {
    video = await openAi.videos.retrieve(submitted.id);
    return video.status !== 'queued' && video.status !== 'in_progress';
  });
  return video;
}

const createAndPoll = async (body: VideoCreateParams) => poll(await openAi.videos.create(body));

const failureOf = (call: Promise<unknown>): Promise<APIError> =>
  call.then(
    () => expect(0).toBe(1),
    (each) => each,
  );

describe("OpenAI's client", () => {
  test('creates a video, polls it, and downloads it', async () => {
    const request = { model: KLING, prompt: 'A harbour', seconds: '10' as '8', size: '720x1280' } as const;
    const submitted = await openAi.videos.create(request);
    expect(submitted).toMatchObject({
      id: expect.stringMatching(/^video_[0-9a-f]{32}$/),
      object: 'video',
      status: 'queued',
      progress: 0,
      error: null,
      completed_at: null,
      expires_at: null,
      seconds: '10',
      size: '720x1280',
    });
    const video = await poll(submitted);
    expect(video).toMatchObject({ status: 'completed', progress: 100, error: null, seconds: '10', model: KLING });
    expect(video.expires_at).toBeGreaterThan(video.completed_at ?? Number.POSITIVE_INFINITY);
    const content = await openAi.videos.downloadContent(video.id);
    expect(content.headers.get('content-type')).toBe('video/mp4');
    const bytes = Buffer.from(await content.arrayBuffer());
    expect(bytes.toString('latin1', 4, 8)).toBe('ftyp');
    const ours = await world.get(`/v1/videos/${video.id.replace('video_', 'gen_')}`, account);
    expect(ours.body).toMatchObject({ status: 'completed', cost: 0.805 });
    expect(Buffer.from(await (await fetch(ours.body.data.url)).arrayBuffer()).equals(bytes)).toBe(true);
  });

  test('animates an image: a file, or a URL', async () => {
    for (const input_reference of [await toFile(PICTURE, 'a.png'), { image_url: IMAGE }])
      expect((await createAndPoll({ model: ANIMATED, prompt: 'Waves', input_reference })).status).toBe('completed');
  });

  test('gets the reason of a failure, and no file', async () => {
    const video = await createAndPoll({ model: KLING, prompt: '[[sandbox fault=policy]]' });
    const error = { code: 'content_policy_violation', message: expect.stringMatching(/content policy/) };
    expect(video).toMatchObject({ status: 'failed', error, progress: 0 });
    expect(await failureOf(openAi.videos.downloadContent(video.id))).toMatchObject({ status: 404 });
  });

  test('lists the videos of its account page by page', async () => {
    const own = await world.createAccount(10.5);
    const client = new OpenAI({ apiKey: own.apiKey, baseURL: `${world.api}/v1`, maxRetries: 0 });
    expect((await client.videos.list()).data).toEqual([]);
    const ids: string[] = [];
    for (const prompt of ['One', 'Two']) ids.push((await client.videos.create({ model: KLING, prompt })).id);
    const page = await client.videos.list({ limit: 1 });
    expect([page.data.map(({ id }) => id), page.has_more]).toEqual([[ids[1]], true]);
    const [last] = (await page.getNextPage()).data;
    expect([last?.id, last?.object]).toEqual([ids[0], 'video']);
    const all: string[] = [];
    for await (const { id } of client.videos.list({ order: 'asc', limit: 1 })) all.push(id);
    expect(all).toEqual(ids);
    expect((await world.get(`/v1/videos?after=${ids[0]}`, account)).status).toBe(400);
  });

  test('gets 400 for what is not available', async () => {
    const refusals = [
      [openAi.videos.list({ limit: 101 }), 'limit'],
      [openAi.videos.list({ order: 'up' as 'asc' }), 'order'],
      [openAi.videos.list({ after: 'video_1' }), 'after'],
      [openAi.videos.downloadContent(`video_${'0'.repeat(32)}`, { variant: 'thumbnail' }), 'variant'],
      [openAi.videos.create({ prompt: 'A coin' }), 'model'],
      [openAi.videos.create({ model: ANIMATED, prompt: 'a', input_reference: { file_id: 'f' } }), 'input_reference'],
      [
        openAi.videos.create({ model: ANIMATED, prompt: 'a', input_reference: await toFile(Buffer.from('a')) }),
        'input_reference',
      ],
      [openAi.videos.create({ model: KLING, prompt: 'a', input_reference: await toFile(PICTURE) }), 'image_url'],
    ] as const;
    const before = (await world.listEvents(account)).length;
    for (const [call, param] of refusals) expect(await failureOf(call)).toMatchObject({ status: 400, param });
    expect((await world.listEvents(account)).length).toBe(before);
  });
});

test("OpenRouter's SDK creates a video from its first frame, polls it, and downloads it", async () => {
  const client = new OpenRouter({ apiKey: account.apiKey, serverURL: `${world.api}/v1` });
  const frame = { type: 'image_url', imageUrl: { url: IMAGE }, frameType: 'first_frame' } as const;
  const request = { model: ANIMATED, prompt: 'Waves', duration: 5, frameImages: [frame] };
  let video = await client.videoGeneration.generate({ videoGenerationRequest: request });
  expect([video.status, video.pollingUrl]).toEqual(['pending', expect.stringContaining(`/v1/videos/${video.id}?`)]);
  expect((await fetch(video.pollingUrl)).ok).toBe(true);
  await world.waitUntil(async () => {
    video = await client.videoGeneration.getGeneration({ jobId: video.id });
    return video.status !== 'pending';
  });
  expect([video.status, video.usage?.cost]).toEqual(['completed', 0.4025]);
  const content = await client.videoGeneration.getVideoContent({ jobId: video.id, index: 0 });
  const [url = ''] = video.unsignedUrls ?? [];
  const bytes = Buffer.from(await new Response(content).arrayBuffer());
  expect(bytes.equals(Buffer.from(await (await fetch(url)).arrayBuffer()))).toBe(true);
});

describe('the file of a video', () => {
  test('is returned only to its account, also in part', async () => {
    const { id } = await createAndPoll({ model: KLING, prompt: 'A harbour' });
    const path = `/v1/videos/${id}/content`;
    expect((await world.get(path)).status).toBe(401);
    expect((await world.get(path, await world.createAccount())).status).toBe(404);
    const headers = { authorization: `Bearer ${account.apiKey}`, range: 'bytes=4-7' };
    const part = await fetch(`${world.api}${path}?variant=video`, { headers });
    expect([part.status, await part.text(), part.headers.get('cache-control')]).toEqual([206, 'ftyp', 'no-store']);
  });
});

test('a form that is sent twice with an Idempotency-Key requests one video', async () => {
  const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': 'a form' };
  const send = () =>
    fetch(`${world.api}/v1/videos`, {
      method: 'POST',
      headers,
      body: createForm({ model: ANIMATED, prompt: 'Waves', input_reference: new File([PICTURE], 'a.png') }),
    });
  const [first, again] = [await (await send()).json(), await (await send()).json()];
  expect(again).toEqual(first);
});

test('JSON of a caller without an account is limited like that of other operations', async () => {
  const body = JSON.stringify({ model: KLING, prompt: 'a'.repeat(70_000) });
  const json = await fetch(`${world.api}/v1/videos`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect(json.status).toBe(413);
});
