/**
 * ElevenLabs' `POST /v1/text-to-speech/{voice_id}` and its `/stream`, billed by the model's credits per character.
 */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { type Call, parseObject, type Routes } from '../../router.ts';
import { DirectiveRunner, isForbidden } from '../directive-runner.ts';
import { estimateSpeechSeconds } from '../files/audio.ts';
import { isBilled } from '../sandbox-file.ts';
import { sendSpeech } from '../send-speech.ts';
import { createSpeech, type VoiceFormat } from '../voice-formats.ts';
import { assertKey, createError, createFaultError, invalidFieldError } from './errors.ts';
import { CREDIT_USD, type ElevenLabsModel, MODELS } from './voices.ts';

const DEFAULT_MODEL = 'eleven_multilingual_v2';
const PATH = /^([^/]+)(\/stream)?$/;
const VOICE = /^[A-Za-z0-9]{20}$/;
/** The output formats. WAV cannot be streamed, because its header contains the length. */
const OUTPUT =
  /^(mp3_(?:22050_32|24000_48|44100_(?:32|64|96|128|192))|(?:pcm|wav)_(?:8000|16000|22050|24000|32000|44100|48000)|ulaw_8000|alaw_8000|opus_48000_(?:32|64|96|128|192))$/;
const TYPES: Readonly<Record<string, string>> = {
  mp3: 'audio/mpeg',
  pcm: 'audio/pcm',
  wav: 'audio/wav',
  ulaw: 'audio/basic',
  alaw: 'audio/alaw',
  opus: 'audio/ogg',
};
const CREDITS_PER_PRICE = 1_000;

export function textToSpeechRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('elevenlabs', createFaultError);
  return {
    'POST /elevenlabs/v1/text-to-speech/*': async (call) => {
      assertKey(call);
      const { text, id, model, format, rate, speed } = await parseRequest(call);
      const applied = await directiveRunner.runDirective(call, text);
      if (!applied) return;
      const request = randomUUID();
      const characters = [...text].length;
      // In tenths of a credit, because the quantity must be an integer and half credits are not rounded.
      const units = {
        unit: '1k_characters',
        quantity: characters * model.credits * 10,
        per: CREDITS_PER_PRICE * 10,
        price: CREDIT_USD,
      };
      if (isBilled(applied.fault)) bill.chargeUnits(request, id, units, applied.fault);
      if (isForbidden(applied))
        throw createError(400, 'content_policy_violation', 'The text is against our terms of service.');
      const bytes = createSpeech(
        format === 'ulaw' ? 'mulaw' : (format as VoiceFormat),
        text,
        estimateSpeechSeconds(characters) / speed,
        rate,
      );
      const headers = {
        'request-id': request,
        'character-cost': Math.ceil(characters * model.credits),
        'x-character-count': characters,
        'history-item-id': randomUUID(),
      };
      await sendSpeech(call, { type: TYPES[format] ?? 'audio/mpeg', bytes }, headers, applied);
    },
  };
}

async function parseRequest(call: Call) {
  const [, voice = '', streams] = PATH.exec(call.parameter) ?? [];
  if (!VOICE.test(voice))
    throw createError(404, 'voice_not_found', `A voice with the voice_id ${voice} was not found.`);
  const output = call.query.get('output_format') ?? 'mp3_44100_128';
  if (!OUTPUT.test(output) || (streams && output.startsWith('wav')))
    throw invalidFieldError(
      ['query', 'output_format'],
      'enum',
      "Input should be 'mp3_44100_128', 'pcm_24000', 'opus_48000_128', ...",
    );
  const body = parseObject(await call.readText());
  if (!body) throw invalidFieldError(['body'], 'json_invalid', 'JSON decode error');
  const { text, model_id: id = DEFAULT_MODEL, language_code: language, voice_settings: settings = {} } = body;
  if (text === undefined) throw invalidFieldError(['body', 'text'], 'missing', 'Field required');
  if (typeof text !== 'string')
    throw invalidFieldError(['body', 'text'], 'string_type', 'Input should be a valid string');
  const model = getModel(id, language);
  if (text.trim() === '') throw createError(400, 'input_text_empty', 'The input text is empty.');
  if ([...text].length > model.maxCharacters)
    throw createError(
      400,
      'max_character_limit_exceeded',
      `This request exceeds the limit of ${model.maxCharacters} characters.`,
    );
  const { speed = 1 } = (settings ?? {}) as { readonly speed?: unknown };
  if (typeof speed !== 'number' || speed < 0.7 || speed > 1.2)
    throw createError(
      400,
      'invalid_voice_settings',
      'Invalid setting for speed received, expected to be greater or equal to 0.7 and less or equal to 1.2.',
    );
  const [format = 'mp3', rate] = output.split('_');
  return { text, id: String(id), model, format, rate: Number(rate), speed };
}

function getModel(id: unknown, language: unknown): ElevenLabsModel {
  const model = MODELS[String(id)];
  if (!model) throw createError(400, 'model_not_found', `A model with model ID ${id} does not exist`);
  if (language === undefined || language === null) return model;
  if (model.supportsLanguage && /^[a-z]{2,3}$/.test(String(language))) return model;
  throw createError(400, 'unsupported_language', `Model '${id}' does not support the language_code ${language}.`);
}
