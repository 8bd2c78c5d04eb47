import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ApiError, type GenerateContentConfig, GoogleGenAI, type Part } from '@google/genai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import sharp from 'sharp';
import { createImage } from '../media/files/images.ts';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: GoogleGenAI;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: `${sandbox.url}/google` } });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const bill = async () => (await (await fetch(`${sandbox.url}/bill`)).json()) as { total_usd: string; lines: number };
const PROMPT = 'A coin on snow'; // 4 tokens

function draw(model: string, contents: string | (string | Part)[], config: GenerateContentConfig = {}) {
  return client.models.generateContent({ model, contents, config: { responseModalities: ['IMAGE'], ...config } });
}

describe("Gemini through Google's own client", () => {
  test('generates an image and bills the reported usage', async () => {
    const answer = await draw('gemini-2.5-flash-image', PROMPT, { imageConfig: { aspectRatio: '16:9' } });
    const { width, height } = await sharp(Buffer.from(answer.data ?? '', 'base64')).metadata();
    expect(width / height).toBeCloseTo(16 / 9, 5);
    expect(answer.usageMetadata).toEqual({
      promptTokenCount: 4,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 4 }],
      candidatesTokenCount: 1_290,
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1_290 }],
      totalTokenCount: 1_294,
    });
    expect(await bill()).toEqual({ total_usd: '0.0387012', lines: 1 });
  });

  test('bills reasoning, text and input images', async () => {
    const data = createImage({ seed: 'a', width: 4, height: 4 }).toString('base64');
    const part = { inlineData: { mimeType: 'image/png', data } };
    const config = { responseModalities: ['TEXT', 'IMAGE'], imageConfig: { imageSize: '4K' } };
    const { usageMetadata, candidates } = await draw('gemini-3-pro-image', [PROMPT, part], config);
    expect(candidates?.[0]?.content?.parts?.[0]).toEqual({ text: 'Here is your picture.' });
    expect(usageMetadata).toMatchObject({
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 4 },
        { modality: 'IMAGE', tokenCount: 560 },
      ],
      candidatesTokensDetails: [
        { modality: 'TEXT', tokenCount: 6 },
        { modality: 'IMAGE', tokenCount: 2_000 },
      ],
      thoughtsTokenCount: 64,
      totalTokenCount: 4 + 560 + 6 + 2_000 + 64,
    });
    expect(await bill()).toEqual({ total_usd: '0.241968', lines: 1 }); // (564 × 2 + 70 × 12 + 2,000 × 120) / 10⁶
  });

  test('charges nothing for a forbidden prompt, but charges for a withheld or missing image', async () => {
    const blocked = await draw('gemini-2.5-flash-image', '[[sandbox fault=policy]]');
    expect(blocked.promptFeedback?.blockReason).toBe('PROHIBITED_CONTENT');
    expect(blocked.candidates).toBeUndefined();
    expect(await bill()).toMatchObject({ lines: 0 });
    const withheld = await draw('gemini-2.5-flash-image', '[[sandbox fault=policy_billed]]');
    expect(withheld.candidates?.[0]).toMatchObject({ finishReason: 'IMAGE_SAFETY' });
    expect(withheld.data).toBeUndefined();
    const nothing = await draw('gemini-2.5-flash-image', '[[sandbox fault=fewer]]');
    expect(nothing.candidates?.[0]).toMatchObject({ finishReason: 'NO_IMAGE' });
    expect(await bill()).toMatchObject({ lines: 2 });
  });

  test.each<[string, string, string, GenerateContentConfig, number]>([
    ['an unknown model', 'gemini-9', PROMPT, {}, 404],
    ['an unknown ratio', 'gemini-2.5-flash-image', PROMPT, { imageConfig: { aspectRatio: '7:5' } }, 400],
    ['an unsupported size', 'gemini-2.5-flash-image', PROMPT, { imageConfig: { imageSize: '4K' } }, 400],
    ['several candidates', 'gemini-2.5-flash-image', PROMPT, { candidateCount: 2 }, 400],
    ['a rate limit', 'gemini-2.5-flash-image', '[[sandbox fault=429]]', {}, 429],
    ['an overload', 'gemini-2.5-flash-image', '[[sandbox fault=overloaded]]', {}, 503],
  ])("reports an error in Google's format: %s", async (_, model, prompt, config, status) => {
    const error = await draw(model, prompt, config).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error.status).toBe(status);
    expect(JSON.parse(error.message).error).toMatchObject({ code: status, status: expect.stringMatching(/^[A-Z_]+$/) });
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('bills responses that are lost', async () => {
    await expect(draw('gemini-2.5-flash-image', '[[sandbox fault=lost]]')).rejects.toThrow('fetch failed');
    expect(await bill()).toMatchObject({ lines: 1 });
  });

  test('requires a key and rejects unknown fields', async () => {
    const ask = async (headers: Record<string, string>, body: object) => {
      const url = `${sandbox.url}/google/v1beta/models/gemini-2.5-flash-image:generateContent`;
      const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      return [answer.status, ((await answer.json()) as { error: { message: string } }).error.message];
    };
    expect(await ask({}, {})).toEqual([403, expect.any(String)]);
    expect(await ask({ 'x-goog-api-key': 'k' }, { prompt: 'a' })).toEqual([400, expect.stringContaining('"prompt"')]);
  });
});

describe("Veo through Google's own client", () => {
  const model = 'veo-3.0-fast-generate-001';
  const made = async (prompt: string, config = {}) => {
    let operation = await client.models.generateVideos({ model, source: { prompt }, config });
    while (!operation.done) operation = await client.operations.getVideosOperation({ operation });
    return operation;
  };

  test('generates a video whose download requires the key, and bills it by the second', async () => {
    const { name, response } = await made('A coin [[sandbox latency=30]]', { durationSeconds: 4 });
    expect(name).toMatch(/^models\/veo-3\.0-fast-generate-001\/operations\/\w+$/);
    const file = response?.generatedVideos?.[0]?.video;
    expect((await fetch(file?.uri ?? '')).status).toBe(403);
    const folder = await mkdtemp(path.join(tmpdir(), 'veo-'));
    const downloadPath = path.join(folder, 'a.mp4');
    const named = /files\/\w+/.exec(file?.uri ?? '')?.[0] ?? ''; // the client recognises a file only in an https URL
    await client.files.download({ file: named, downloadPath });
    expect((await readFile(downloadPath)).toString('latin1', 4, 8)).toBe('ftyp');
    await rm(folder, { recursive: true });
    expect(await bill()).toEqual({ total_usd: '0.6', lines: 1 });
  });

  test('charges nothing for a filtered, failed or missing video', async () => {
    const { response } = await made('[[sandbox fault=policy]]');
    expect(response).toMatchObject({ raiMediaFilteredCount: 1, raiMediaFilteredReasons: [expect.any(String)] });
    expect((await made('[[sandbox fault=error]]')).error).toMatchObject({ code: 13 });
    expect((await made('[[sandbox fault=fewer]]')).response?.generatedVideos).toBeUndefined();
    expect(await bill()).toMatchObject({ lines: 0 });
  });

  test('responds with 404 for an expired file, and states the type of a video for a disguised file', async () => {
    const headers = { 'x-goog-api-key': 'k' };
    const fetched = async (fault: string) => {
      const { response } = await made(`[[sandbox fault=${fault}]]`);
      return fetch(response?.generatedVideos?.[0]?.video?.uri ?? '', { headers });
    };
    expect((await fetched('expired')).status).toBe(404);
    expect((await fetched('disguised_html')).headers.get('content-type')).toBe('video/mp4');
  });

  test.each([
    ['an unknown length', { durationSeconds: 5 }],
    ['a short video in high resolution', { durationSeconds: 4, resolution: '1080p' }],
    ['an unknown ratio', { aspectRatio: '1:1' }],
    ['several videos', { numberOfVideos: 2 }],
  ])('rejects unsupported parameters: %s', async (_, config) => {
    await expect(made('A coin', config)).rejects.toMatchObject({ status: 400 });
    expect(await bill()).toMatchObject({ lines: 0 });
  });
});
