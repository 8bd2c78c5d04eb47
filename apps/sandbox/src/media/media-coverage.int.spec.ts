import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import {
  type Endpoint,
  isMediaModel,
  LIST_PRICE_UNITS,
  MEDIA_UNITS,
  type MediaChoices,
  type MediaModel,
  readCatalogue,
} from '#catalogue';
import { calculateCostAndPrice, type Unit, type Usage } from '#domain';
import { formatUsd } from '#kernel';
import { createAudioFile } from '#testing';
import { startSandbox } from '../sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

/** Prices of images are tested by images-prices.int.spec.ts, through the gateway. */
const media = (readCatalogue().models.filter(isMediaModel) as readonly MediaModel[]).filter(
  ({ type }) => type !== 'image',
);
const TEXT = 'Every coin is counted, and none of them twice.';
/** An integer, because some providers bill full seconds. */
const SECONDS = 2;

/** Calls an endpoint in its own protocol, and asserts that the request succeeds. */
async function ask({ upstream, model }: Endpoint, chosen: MediaChoices): Promise<void> {
  const { quality, size, resolution, duration, language } = chosen;
  const send = async (path: string, body: unknown, headers: Record<string, string>) => {
    const type = Buffer.isBuffer(body) ? 'audio/wav' : 'application/json';
    const content = Buffer.isBuffer(body) ? new Uint8Array(body) : JSON.stringify(body);
    const answer = await fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': type, ...headers },
      body: content,
    });
    expect([path, answer.status, answer.ok ? '' : await answer.text()]).toEqual([path, 200, '']);
    return answer;
  };
  if (model.startsWith('tts')) {
    const body = { model, input: TEXT, voice: 'alloy' };
    await send('/openai/v1/audio/speech', body, { authorization: 'Bearer k' });
  } else if (model.startsWith('whisper')) await transcribe(model);
  else if (upstream === 'fal') {
    const headers = { authorization: 'Key k' };
    const answer = await send(
      `/fal/${model}`,
      {
        prompt: TEXT,
        image_url: 'https://x.example/a.png',
        aspect_ratio: size,
        duration: model.includes('veo3') ? `${duration}s` : duration,
        resolution: resolution ?? quality,
      },
      headers,
    );
    const { status_url, response_url } = (await answer.json()) as Record<string, string>;
    expect(await (await fetch(status_url ?? '', { headers })).json()).toMatchObject({ status: 'COMPLETED' });
    expect((await fetch(response_url ?? '', { headers })).status).toBe(200);
  } else if (upstream === 'google') {
    const parameters = { durationSeconds: Number(duration), aspectRatio: size, resolution: quality };
    const body = { instances: [{ prompt: TEXT }], parameters };
    await send(`/google/v1beta/models/${model}:predictLongRunning`, body, { 'x-goog-api-key': 'k' });
  } else if (upstream === 'elevenlabs') {
    const path = '/elevenlabs/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM';
    await send(path, { text: TEXT, model_id: model }, { 'xi-api-key': 'k' });
  } else if (model.startsWith('nova')) {
    await send(
      `/deepgram/v1/listen?model=${model}&language=${language}`,
      createAudioFile('wav', { seconds: SECONDS }),
      {
        authorization: 'Token k',
      },
    );
  } else await send(`/deepgram/v1/speak?model=${model}`, { text: TEXT }, { authorization: 'Token k' });
}

/** Transcribes a recording without a language, because OpenAI bills all languages at one price. */
async function transcribe(model: string): Promise<void> {
  const client = new OpenAI({ apiKey: 'k', baseURL: `${sandbox.url}/openai/v1` });
  const file = await toFile(createAudioFile('wav', { seconds: SECONDS }), 'a.wav');
  await client.audio.transcriptions.create({ model, file });
}

/** Returns every combination of a model's choices. */
function combinations({ choices = {} }: MediaModel): readonly MediaChoices[] {
  return Object.entries(choices).reduce<readonly MediaChoices[]>(
    (all, [choice, words]) => all.flatMap((each) => words.map((word) => ({ ...each, [choice]: word }))),
    [{}],
  );
}

/** Google generates videos of less than 8 seconds in 720p only. */
function isMade({ upstream }: Endpoint, { quality, duration }: MediaChoices): boolean {
  return upstream !== 'google' || quality === '720p' || duration === '8';
}

/** Returns the cost at the prices of the catalogue. */
function expected({ tariff }: Endpoint, chosen: MediaChoices): string {
  const used: Usage = {
    videoSecond: Number(chosen.duration),
    clip: 1,
    audioMillisecond: SECONDS * 1_000,
    character: TEXT.length,
  };
  const unit = tariff.prices[0]?.unit as Unit;
  return formatUsd(calculateCostAndPrice({ [unit]: used[unit] }, tariff.prices, chosen).cost);
}

/** Returns the unit of the tariff as it is named on the bill. */
function listedUnit({ tariff }: Endpoint) {
  return MEDIA_UNITS.find((each) => LIST_PRICE_UNITS[each].unit === tariff.prices[0]?.unit);
}

interface Line {
  readonly model: string;
  readonly usd: string;
  readonly units: { readonly unit: string };
}

/** Google is left out: google.int.spec.ts tests its videos and images. */
const offers = media.flatMap((model) =>
  model.endpoints
    .filter(({ upstream }) => upstream !== 'google')
    .map((endpoint) => [model.id, model, endpoint] as const),
);

describe('outside Google, every combination of choices of a video or audio model is billed as in the catalogue', () => {
  test.each(offers)('%s', async (_, model, endpoint) => {
    await fetch(`${sandbox.url}/bill`, { method: 'DELETE' });
    const chosen = combinations(model).filter((each) => isMade(endpoint, each));
    for (const each of chosen) await ask(endpoint, each);
    const lines = (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as readonly Line[];
    const unit = listedUnit(endpoint);
    expect(lines.map((line) => [line.model, line.units.unit, line.usd])).toEqual(
      chosen.map((each) => [endpoint.model, unit, expected(endpoint, each)]),
    );
  });
});
