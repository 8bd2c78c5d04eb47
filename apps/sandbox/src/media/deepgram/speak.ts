/** Deepgram's `POST /v1/speak`: streamed speech, billed by the character. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { parseObject, type Routes } from '../../router.ts';
import { DirectiveRunner, isForbidden } from '../directive-runner.ts';
import { estimateSpeechSeconds } from '../files/audio.ts';
import { isBilled } from '../sandbox-file.ts';
import { sendSpeech } from '../send-speech.ts';
import { createSpeech, type VoiceFormat } from '../voice-formats.ts';
import { assertKey, createCategorizedError, createError, createFaultError } from './errors.ts';

/** USD per 1,000 characters. */
const PRICE = '0.030';
const MAX_CHARACTERS = 2_000;
const VOICE = /^aura-2-[a-z]+-(en|es|de|fr|nl|it|ja)$/;

interface Encoding {
  readonly format: VoiceFormat;
  readonly containers: readonly string[];
  readonly rates: readonly number[];
  type(container: string, rate: number): string;
}

const TELEPHONE = [8_000, 16_000];
const ENCODINGS: Readonly<Record<string, Encoding>> = {
  mp3: { format: 'mp3', containers: ['none'], rates: [22_050], type: () => 'audio/mpeg' },
  linear16: {
    format: 'pcm',
    containers: ['wav', 'none'],
    rates: [24_000, 8_000, 16_000, 32_000, 48_000],
    type: (container, rate) => (container === 'wav' ? 'audio/wav' : `audio/l16;rate=${rate};channels=1`),
  },
  mulaw: { format: 'mulaw', containers: ['none'], rates: TELEPHONE, type: () => 'audio/basic' },
  alaw: { format: 'alaw', containers: ['none'], rates: TELEPHONE, type: () => 'audio/alaw' },
  opus: { format: 'opus', containers: ['ogg'], rates: [48_000], type: () => 'audio/ogg;codecs=opus' },
  flac: {
    format: 'flac',
    containers: ['none'],
    rates: [48_000, 8_000, 16_000, 22_050, 32_000],
    type: () => 'audio/flac',
  },
  aac: { format: 'aac', containers: ['none'], rates: [22_050], type: () => 'audio/aac' },
};

export function speakRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('deepgram', createFaultError);
  return {
    'POST /deepgram/v1/speak': async (call) => {
      assertKey(call);
      const { voice, format, rate, type, speed } = parseVoiceOptions(call.query);
      const text = parseText(await call.readText());
      const applied = await directiveRunner.runDirective(call, text);
      if (!applied) return;
      const id = randomUUID();
      const quantity = [...text].length;
      const units = { unit: '1k_characters', quantity, per: 1_000, price: PRICE };
      if (isBilled(applied.fault)) bill.chargeUnits(id, voice, units, applied.fault);
      if (isForbidden(applied))
        throw createCategorizedError(400, 'CONTENT_POLICY', 'The text is against the rules.', 'Say something else.');
      const bytes = createSpeech(format, text, estimateSpeechSeconds(quantity) / speed, rate);
      const headers = { 'dg-request-id': id, 'dg-model-name': voice, 'dg-char-count': quantity };
      await sendSpeech(call, { type, bytes }, headers, applied);
    },
  };
}

function parseVoiceOptions(query: URLSearchParams) {
  const { model: voice = 'aura-asteria-en', encoding: name = 'mp3' } = Object.fromEntries(query);
  if (!VOICE.test(voice)) throw createError(400, 'INVALID_QUERY_PARAMETER', `No such model: ${voice}`);
  const encoding = ENCODINGS[name];
  if (!encoding)
    throw createError(
      400,
      'INVALID_QUERY_PARAMETER',
      `Failed to deserialize query parameters: unknown encoding ${name}`,
    );
  const container = query.get('container') ?? (encoding.containers[0] as string);
  const rate = Number(query.get('sample_rate') ?? encoding.rates[0]);
  const speed = Number(query.get('speed') ?? 1);
  if (!encoding.containers.includes(container) || !encoding.rates.includes(rate))
    throw createError(400, 'UNSUPPORTED_AUDIO_FORMAT', `Unsupported audio format: ${name} in ${container} at ${rate}`);
  if (!(speed >= 0.7 && speed <= 1.5))
    throw createError(400, 'INVALID_QUERY_PARAMETER', 'speed should be from 0.7 to 1.5');
  const format = container === 'wav' ? 'wav' : encoding.format;
  return { voice, format, rate, type: encoding.type(container, rate), speed } as const;
}

function parseText(json: string): string {
  const body = parseObject(json);
  if (!body)
    throw createCategorizedError(400, 'INVALID_JSON', 'Invalid JSON submitted.', 'expected value at line 1 column 1');
  const { text } = body;
  if (typeof text !== 'string')
    throw createError(
      400,
      'PAYLOAD_ERROR',
      'Failed to deserialize JSON payload. Please specify exactly one of `text` or `url` in the JSON body.',
    );
  if (text.trim() === '') throw createError(400, 'EMPTY_TEXT', 'Input text contains no characters.');
  if ([...text].length > MAX_CHARACTERS)
    throw createError(413, 'Payload Too Large', `Input text exceeds maximum character limit of ${MAX_CHARACTERS}.`);
  return text;
}
