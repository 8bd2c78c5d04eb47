/** `POST /openai/v1/audio/speech`: streamed speech, billed by the character. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { DirectiveRunner, isForbidden } from '../../media/directive-runner.ts';
import { estimateSpeechSeconds } from '../../media/files/audio.ts';
import { sendSpeech } from '../../media/send-speech.ts';
import { createSpeech } from '../../media/voice-formats.ts';
import { parseObject, type Routes } from '../../router.ts';
import { assertKey, createError, createFaultError, invalidRequestError } from '../errors.ts';

/** USD per 1,000 characters. Models that are billed by audio tokens are not simulated. */
export const SPEECH_MODELS: Readonly<Record<string, string>> = { 'tts-1': '0.015', 'tts-1-hd': '0.030' };
const VOICES = ['alloy', 'ash', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer'];
const MAX_CHARACTERS = 4_096;

type Format = 'mp3' | 'opus' | 'aac' | 'flac' | 'wav' | 'pcm';
const TYPES: Readonly<Record<Format, string>> = {
  mp3: 'audio/mpeg',
  opus: 'audio/opus',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
};

export function speechRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('openai', createFaultError);
  return {
    'POST /openai/v1/audio/speech': async (call) => {
      assertKey(call);
      const { model, price, input, format, speed } = parseRequest(await call.readText());
      const applied = await directiveRunner.runDirective(call, input);
      if (!applied) return;
      const quantity = [...input].length;
      const id = `req_${randomUUID()}`;
      const isRefused = isForbidden(applied);
      if (!isRefused || applied.fault === 'policy_billed')
        bill.chargeUnits(id, model, { unit: '1k_characters', quantity, per: 1_000, price }, applied.fault);
      if (isRefused)
        throw createError('invalid_request_error', 400, 'Your request was rejected.', {
          code: 'content_policy_violation',
        });
      const bytes = createSpeech(format, input, estimateSpeechSeconds(quantity) / speed);
      await sendSpeech(call, { type: TYPES[format], bytes }, { 'x-request-id': id }, applied);
    },
  };
}

function parseRequest(json: string) {
  const body = parseObject(json);
  if (!body) throw invalidRequestError(400, 'We could not parse the JSON body of your request.');
  const { model, input, voice, response_format: format = 'mp3', speed = 1 } = body;
  const price = SPEECH_MODELS[String(model)];
  if (price === undefined)
    throw invalidRequestError(
      404,
      `The model '${model}' does not exist or you do not have access to it.`,
      null,
      'model_not_found',
    );
  if (typeof input !== 'string' || input === '')
    throw invalidRequestError(400, "Invalid 'input': must be a string that is not empty.", 'input');
  if ([...input].length > MAX_CHARACTERS)
    throw invalidRequestError(
      400,
      `String should have at most ${MAX_CHARACTERS} characters`,
      'input',
      'string_too_long',
    );
  if (!VOICES.includes(String(voice)))
    throw invalidRequestError(
      400,
      `Input should be ${VOICES.map((name) => `'${name}'`).join(', ')}`,
      'voice',
      'invalid_value',
    );
  if (!Object.hasOwn(TYPES, String(format)))
    throw invalidRequestError(
      400,
      `Input should be ${Object.keys(TYPES).join(', ')}`,
      'response_format',
      'invalid_value',
    );
  if (typeof speed !== 'number' || speed < 0.25 || speed > 4)
    throw invalidRequestError(400, 'Input should be from 0.25 to 4', 'speed', 'invalid_value');
  return { model: String(model), price, input, format: format as Format, speed };
}
