/** Videos from the request to the file, with the gateway and its workflows in this process and simulated providers. */
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { verify } from '#audit';
import { type TestAccount, type TestResponse, TestWorld } from '#testing';
import { StubServer } from '../../../../../libs/testing/src/servers/stub-server.ts';
import { closeJobCost, printJobs } from '../../../../ledger/src/jobs.ts';
import { createImage } from '../../../../sandbox/src/media/files/images.ts';

const KLING = 'kling/kling-2.5-turbo';
const PICTURE = createImage({ seed: 'a', width: 16, height: 16 });
const IMAGE = `data:image/png;base64,${PICTURE.toString('base64')}`;

/** A server of the customer that serves an image. */
const pictures = new StubServer();
pictures.handler = (response) => void response.writeHead(200, { 'content-type': 'image/png' }).end(PICTURE);
let at: string;
let world: TestWorld;
let account: TestAccount;
/** Videos that will fail. They are requested at the start, because they take a while. */
let bad: Record<'policy' | 'html' | 'expired' | 'error', Promise<TestResponse>>;
beforeAll(async () => {
  world = await TestWorld.openWithSagas(async () => {
    // The URLs of webhooks are set before the gateway listens. No connection gets a port below 32,768 in the meantime.
    const port = randomInt(20_000, 30_000);
    at = await pictures.listen();
    return { PORT: String(port), PUBLIC_BASE_URL: `http://127.0.0.1:${port}`, PRIVATE_SOURCES: at };
  });
  account = await world.createAccount(42);
  const spoilt = (fault: string) => made(told(`fault=${fault}`));
  bad = { policy: spoilt('policy'), html: spoilt('html'), expired: spoilt('expired'), error: spoilt('error') };
});
afterAll(async () => {
  await world.close();
  await pictures.close();
});

const ask = (body: object, by = account) =>
  world.post('/v1/videos', { model: KLING, prompt: 'A harbour at dusk', ...body }, by);
const told = (directive: string) => ({ prompt: `[[sandbox ${directive}]]` });

async function ended(id: string, by = account): Promise<TestResponse> {
  let answer = await world.get(`/v1/videos/${id}`, by);
  await world.waitUntil(async () => {
    answer = await world.get(`/v1/videos/${id}`, by);
    return answer.status !== 202;
  });
  return answer;
}

const made = async (body: object, by = account) => ended((await ask(body, by)).body.id, by);

/** Returns the types of the events that follow the transfer of a video's hold to the job. */
async function endOf(id: string): Promise<readonly string[]> {
  const facts = await world.listEvents();
  const asked = facts.find(({ type, stream }) => type === 'VideoRequested' && stream === `video-${id}`);
  if (asked?.type !== 'VideoRequested') throw new Error('the video was not requested');
  const { holdId } = asked.data.hold;
  return facts.flatMap(({ type, data }) => ('holdId' in data && data.holdId === holdId ? [type] : [])).slice(2);
}

describe('a video', () => {
  test('is requested, polled until it is completed, and downloaded', async () => {
    const own = await world.createAccount(1.05);
    const before = Math.floor(Date.now() / 1_000);
    const asked = await ask({ duration: 5 }, own);
    expect(asked.status).toBe(202);
    expect(asked.headers.get('retry-after')).toBe('5');
    const { id, created, ...rest } = asked.body;
    expect(id).toMatch(/^gen_[0-9a-f]{32}$/);
    expect(created).toBeGreaterThanOrEqual(before - 1); // the clock of the database can differ slightly
    expect(created).toBeLessThanOrEqual(Date.now() / 1_000 + 1);
    const status_url = expect.stringMatching(`^${world.api}/v1/videos/${id}\\?exp=`);
    const common = {
      object: 'video',
      model: KLING,
      created_at: created,
      progress: 0,
      seconds: '5',
      size: '1280x720',
      prompt: null,
      remixed_from_video_id: null,
      completed_at: null,
      expires_at: null,
      polling_url: asked.body.status_url,
    };
    expect(rest).toEqual({ ...common, status: 'pending', estimated_cost: 0.4025, status_url });

    const pending = await world.get(`/v1/videos/${id}`, own);
    expect(pending.status).toBe(202);
    expect(pending.headers.get('retry-after')).toBe('5');
    expect(pending.body).toEqual({ ...common, id, created, status: 'pending' });

    const { status, body } = await ended(id, own);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id, model: KLING, created, status: 'completed', cost: 0.4025 });
    expect(body).toMatchObject({ progress: 100, unsigned_urls: [body.data.url], usage: { cost: 0.4025 } });
    expect(body.completed_at).toBeGreaterThanOrEqual(created);
    expect(body.expires_at).toBeGreaterThan(body.completed_at + 24 * 3_600);
    expect(body.data.content_type).toBe('video/mp4');
    const file = await fetch(body.data.url);
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    expect(Buffer.from(await file.arrayBuffer()).toString('latin1', 4, 8)).toBe('ftyp');
    expect(await world.fetchBalance(own)).toBe('0.6475');
    expect((await world.get(`/videos/${id}`, own)).status).toBe(200);
  });

  test('is visible only to its account and by its signed URL', async () => {
    const { id, status_url } = (await ask({})).body;
    const path = `/v1/videos/${id}`;
    expect((await world.get(path, await world.createAccount())).status).toBe(404);
    expect((await world.get(path)).status).toBe(401);
    expect((await world.get(`/v1/videos/gen_${'0'.repeat(32)}`, account)).status).toBe(404);
    expect((await world.get('/v1/videos/gen_1', account)).status).toBe(404);
    expect((await fetch(status_url)).status).toBe(202);
    const { url } = (await ended(id)).body.data;
    const [signed, ofFile] = [new URL(status_url).search, new URL(url).search];
    const later = signed.replace(/exp=(\d+)/, (_, exp) => `exp=${Number(exp) + 1}`);
    for (const query of [ofFile, later, `${signed}0`, '?exp=1&sig=a', '?sig=a'])
      expect((await world.get(`${path}${query}`, account)).status).toBe(403);
    expect((await fetch(`${new URL(url).origin}${new URL(url).pathname}${signed}`)).status).toBe(403);
    expect(await (await fetch(status_url)).json()).toMatchObject({ status: 'completed' });
  });

  test('costs nothing if it fails, and has an error message and an error code', async () => {
    const { status, body } = await bad.policy;
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: 'failed', error_code: 'content_policy_violation' });
    expect(body.error).toMatch(/violates the content policy of the provider/);
    expect(body.data).toBeUndefined();
    expect(await endOf(body.id)).toEqual(['HoldReleased']);
    expect((await bad.error).body.error_code).toBe('upstream_error');
  });

  test.each(['html', 'expired'] as const)(
    'fails with result_lost if its file is unusable (%s), and the operator absorbs its cost',
    async (fault) => {
      const { body } = await bad[fault];
      expect(body).toMatchObject({ status: 'failed', error_code: 'result_lost' });
      expect(await endOf(body.id)).toEqual(['HoldReleased', 'ChargeAbsorbed']);
    },
  );

  test('is billed once if webhooks arrive early or twice, or if a response of the provider is lost', async () => {
    const all = await Promise.all(['duplicate latency=20', 'lost'].map((fault) => made(told(`fault=${fault}`))));
    expect(all.map(({ body }) => body.status)).toEqual(['completed', 'completed']);
    for (const { body } of all) expect(await endOf(body.id)).toEqual(['HoldSettled']);
    const billed = (await world.bill.fetchLines()).filter(({ fault = '' }) => ['duplicate', 'lost'].includes(fault));
    expect(billed.length).toBe(2);
  });

  test('is generated from an image in the request or at a URL, but not from a forbidden URL', async () => {
    const asked = await ask({ model: `${KLING}-i2v`, image_url: IMAGE, duration: '10s', aspect_ratio: '16:9' });
    expect(asked.body.estimated_cost).toBe(0.805);
    expect((await ended(asked.body.id)).body.status).toBe('completed');
    expect((await made({ model: `${KLING}-i2v`, image_url: `${at}/a.png` })).body.status).toBe('completed');
    expect(pictures.requests.map(({ line }) => line)).toEqual(['GET /a.png']);
    const unfit = await ask({ model: `${KLING}-i2v`, image_url: 'http://127.0.0.1/a.png' });
    expect([unfit.status, unfit.body.error.param]).toEqual([400, 'image_url']);
    expect((await world.listEvents(account)).at(-1)?.type).toBe('HoldReleased');
  });
});

describe('a request for a video', () => {
  test.each<[string, object, RegExp]>([
    ['a model of another type', { model: 'openai/gpt-5-mini' }, /does not generate videos; its type is chat/],
    ['no prompt', { prompt: ' ' }, /prompt is required/],
    ['an unsupported duration', { duration: 7 }, /duration must be one of 5, 10 for kling/],
    ['an invalid duration', { duration: {} }, /duration must be one of 5, 10/],
    ['an unsupported aspect ratio', { aspect_ratio: '4:3' }, /aspect_ratio must be one of 16:9, 9:16, 1:1/],
    ['an unsupported quality', { model: 'wan-2.5', quality: '4k' }, /quality must be one of 720p, 1080p/],
    ['no image', { model: `${KLING}-i2v` }, /image_url is required for kling\/kling-2.5-turbo-i2v/],
    ['an image that the model would ignore', { image_url: IMAGE }, /"kling\/kling-2.5-turbo" .*not .*image_url/],
    ['an invalid image', { model: `${KLING}-i2v`, image_url: 'data:image/png;base64,AAAA' }, /image_url/],
    ['a prompt of another type', { prompt: 5 }, /prompt must be a string/],
    ['two images', { image_url: IMAGE, input_reference: { image_url: IMAGE } }, /Send one image/],
    ['an image by the id of a file', { input_reference: { file_id: 'file-1' } }, /files by id are not supported/],
    ['an image of another form', { input_reference: IMAGE }, /input_reference must be an object/],
    ['an image without a URL', { input_reference: {} }, /input_reference must have the URL/],
    ['a last frame', { frame_images: [{ frame_type: 'last_frame' }] }, /only first_frame is supported/],
    ['frames that are no list', { frame_images: 'a' }, /frame_images must be an array/],
    ['an empty frame', { frame_images: [null] }, /frame_images must have the URL/],
    ['references', { input_references: [{ type: 'image_url' }] }, /input_references is not supported/],
    ['a job to continue', { previous_job_id: 'gen_1' }, /previous_job_id is not supported/],
  ])('is rejected for %s, and appends no event', async (_, body, message) => {
    const before = (await world.listEvents()).length;
    const { status, body: answer } = await ask(body);
    expect([status, answer.message]).toEqual([400, expect.stringMatching(message)]);
    expect((await world.listEvents()).length).toBe(before);
  });

  test('accepts several notations of a duration, and ignores options that the model does not have', async () => {
    const costs = [];
    for (const duration of [10, '10', '10s', ' 10 seconds'])
      costs.push((await ask({ duration, size: '1920x1080', quality: 'best', n: 4, webhook: 'x' })).body.estimated_cost);
    expect(costs).toEqual([0.805, 0.805, 0.805, 0.805]);
    for (const body of [{ duration: null }, { image_url: '' }, { image_url: null }])
      expect((await ask(body)).body.estimated_cost).toBe(0.4025);
  });

  test('is rejected with 429 after providers have rejected too many prompts of the account', async () => {
    const api = await world.addGateway({ refusedPerHour: 1 });
    const body = { model: KLING, prompt: 'A harbour' };
    await bad.policy;
    await world.waitUntil(async () => (await world.post('/v1/videos', body, account, api)).status === 429);
    const other = await world.createAccount(1.05);
    expect((await world.post('/v1/videos', body, other, api)).status).toBe(202);
  });

  test('is rejected without money, for an unknown model or with an unknown key', async () => {
    const poor = await world.createAccount();
    expect((await ask({}, poor)).status).toBe(402);
    expect((await ask({ model: 'kling/none' })).status).toBe(404);
    expect((await ask({}, { ...poor, apiKey: 'sk-wrong' })).status).toBe(401);
  });

  test('gets its first response again when it is repeated with the same Idempotency-Key', async () => {
    const headers = { authorization: `Bearer ${account.apiKey}`, 'idempotency-key': `videos ${Date.now()}` };
    const body = { model: KLING, prompt: 'A lighthouse' };
    const first = await world.send('POST', '/v1/videos', { headers, body });
    const again = await world.send('POST', '/v1/videos', { headers, body });
    expect(again.body).toEqual(first.body);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect([again.status, again.headers.get('retry-after')]).toEqual([202, '5']);
    const other = await world.send('POST', '/v1/videos', { headers, body: { ...body, prompt: 'A tower' } });
    expect(other.status).toBe(409);
    await ended(first.body.id);
    expect((await world.send('POST', '/v1/videos', { headers, body })).body).toEqual(first.body);
    const asked = (await world.listEvents()).filter(({ type }) => type === 'VideoRequested');
    expect(new Set(asked.map(({ stream }) => stream)).size).toBe(asked.length);
  });
});

test('returns 404 for webhooks with an unknown or forged token', async () => {
  const hook = (path: string) => world.send('POST', `/v1/videos/webhooks/${path}`, { body: { request_id: 'a' } });
  expect((await hook('fal/none')).status).toBe(404);
  expect((await hook(`fal/gen_${'0'.repeat(32)}.1.${'a'.repeat(43)}`)).status).toBe(404);
  expect((await hook('google/none')).status).toBe(404);
});

test('lists the possible cost of a rejected video, and records once the cost that the operator enters', async () => {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const { id } = (await bad.policy).body;
  await world.waitUntil(async () => {
    lines.length = 0;
    await printJobs(world.foundation, print);
    return lines.some((line) => line.includes(id));
  });
  expect(lines.find((line) => line.includes(id))).toMatch(/ 0\.35 USD at most to fal \(as [\w-]{36}\), kling/);
  for (const cost of ['', 'much', '-1'])
    await expect(closeJobCost(world.foundation, id, cost, print)).rejects.toThrow('--cost');
  const { id: other } = (await bad.error).body;
  await expect(closeJobCost(world.foundation, other, 'none', print)).rejects.toThrow('has no open cost');
  await closeJobCost(world.foundation, id, '0.2', print);
  await closeJobCost(world.foundation, id, '0.2', print);
  expect(lines.slice(-2)).toEqual([`${id}: 0.2 USD is recorded as cost`, `${id}: 0.2 USD was recorded before`]);
  await expect(closeJobCost(world.foundation, id, 'none', print)).rejects.toThrow('a different amount');
  await verify(world.foundation, print);
  expect(lines.at(-1)).toBe('drift 0');
});

test('records the charge and the duration of a video in the history', async () => {
  const { body } = await world.get('/queries/history?page_count=100', account);
  const rows = body.data.filter((row: { query_type: string }) => row.query_type === 'video_generation');
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.find((row: { price_in_usd: number }) => row.price_in_usd === 0.4025)).toMatchObject({
    model: KLING,
    output_count: 5,
    input_count: 0,
    input_unit: null,
    output_unit: 'seconds',
  });
});
