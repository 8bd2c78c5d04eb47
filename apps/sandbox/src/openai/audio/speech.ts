/** `POST /openai/v1/audio/speech`: sound as it is made, billed by the character. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { secondsToSay } from '../../media/files/audio.ts';
import { Instructions, isForbidden } from '../../media/instructions.ts';
import { sendSpoken } from '../../media/spoken.ts';
import { spokenAs } from '../../media/voice-formats.ts';
import { parseObject, type Routes } from '../../router.ts';
import { assertKey, refusal, refusalAsTold, refusalOf } from '../errors.ts';

/** USD for 1,000 characters. Those that are billed by tokens of sound are not played. */
export const SPEECH_MODELS: Readonly<Record<string, string>> = { 'tts-1': '0.015', 'tts-1-hd': '0.030' };
const VOICES = ['alloy', 'ash', 'coral', 'echo', 'fable', 'nova', 'onyx', 'sage', 'shimmer'];
const MOST_CHARACTERS = 4_096;

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
  const instructions = new Instructions('openai', refusalAsTold);
  return {
    'POST /openai/v1/audio/speech': async (call) => {
      assertKey(call);
      const { model, price, input, format, speed } = asked(await call.text());
      const told = await instructions.follow(call, input);
      if (!told) return;
      const quantity = [...input].length;
      const id = `req_${randomUUID()}`;
      const isRefused = isForbidden(told);
      if (!isRefused || told.fault === 'policy_billed')
        bill.chargeUnits(id, model, { unit: '1k_characters', quantity, per: 1_000, price }, told.fault);
      if (isRefused)
        throw refusalOf('invalid_request_error', 400, 'Your request was rejected.', {
          code: 'content_policy_violation',
        });
      const bytes = spokenAs(format, input, secondsToSay(quantity) / speed);
      await sendSpoken(call, { type: TYPES[format], bytes }, { 'x-request-id': id }, told);
    },
  };
}

function asked(json: string) {
  const body = parseObject(json);
  if (!body) throw refusal(400, 'We could not parse the JSON body of your request.');
  const { model, input, voice, response_format: format = 'mp3', speed = 1 } = body;
  const price = SPEECH_MODELS[String(model)];
  if (price === undefined)
    throw refusal(404, `The model '${model}' does not exist or you do not have access to it.`, null, 'model_not_found');
  if (typeof input !== 'string' || input === '')
    throw refusal(400, "Invalid 'input': must be a string that is not empty.", 'input');
  if ([...input].length > MOST_CHARACTERS)
    throw refusal(400, `String should have at most ${MOST_CHARACTERS} characters`, 'input', 'string_too_long');
  if (!VOICES.includes(String(voice)))
    throw refusal(400, `Input should be ${VOICES.map((each) => `'${each}'`).join(', ')}`, 'voice', 'invalid_value');
  if (!Object.hasOwn(TYPES, String(format)))
    throw refusal(400, `Input should be ${Object.keys(TYPES).join(', ')}`, 'response_format', 'invalid_value');
  if (typeof speed !== 'number' || speed < 0.25 || speed > 4)
    throw refusal(400, 'Input should be from 0.25 to 4', 'speed', 'invalid_value');
  return { model: String(model), price, input, format: format as Format, speed };
}
