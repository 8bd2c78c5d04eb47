/** ElevenLabs' text to speech: `POST /v1/text-to-speech/{voice_id}`. Billed by character. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bill } from '../bill.ts';
import { readDirective } from '../provider/directive.ts';
import { FaultCounter, failedOutright } from '../provider/faults.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { mp3, secondsToSay } from './files/sounds.ts';

/** USD for 1,000 characters, and the longest text. */
const MODELS: Readonly<Record<string, { readonly usd: string; readonly most: number }>> = {
  eleven_multilingual_v2: { usd: '0.10', most: 10_000 },
  eleven_flash_v2_5: { usd: '0.05', most: 40_000 },
  eleven_v3: { usd: '0.10', most: 5_000 },
};
const DEFAULT_MODEL = 'eleven_multilingual_v2';
const VOICE = /^[A-Za-z0-9]{20}$/;
const STATUS = { '400': 400, '429': 429, '500': 500, overloaded: 503 } as const;

export function elevenLabsRoutes(bill: Bill): Routes {
  const faults = new FaultCounter();
  return {
    'POST /elevenlabs/v1/text-to-speech/:voice': async (call) => {
      if (!call.request.headers['xi-api-key']) throw refused(401, 'invalid_api_key', 'Invalid API key');
      const { text, id, price } = await asked(call);
      const directive = readDirective(text);
      const fault = faults.next(directive, 'elevenlabs');
      if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
      if (failedOutright(fault, call, (kind) => refused(STATUS[kind], 'instructed', 'As the sandbox was instructed')))
        return;
      const quantity = [...text].length;
      const request = randomUUID();
      bill.chargeUnits(request, id, { unit: '1k_characters', quantity, per: 1_000, price }, fault);
      call.bytes(200, 'audio/mpeg', mp3(text, secondsToSay(quantity)), {
        'request-id': request,
        'character-cost': quantity,
      });
    },
  };
}

async function asked(call: Call) {
  const body = parseObject((await call.body()).toString());
  const { text, model_id: id = DEFAULT_MODEL } = body ?? {};
  if (!VOICE.test(call.parameter))
    throw refused(404, 'voice_not_found', `A voice with the voice_id ${call.parameter} was not found.`);
  const model = MODELS[String(id)];
  if (!model) throw refused(400, 'model_not_found', `A model with model ID ${id} does not exist`);
  if (typeof text !== 'string' || text === '') throw new Refusal(422, missing('text'));
  if ([...text].length > model.most)
    throw refused(400, 'max_character_limit_exceeded', `This request exceeds the limit of ${model.most} characters.`);
  return { text, id: String(id), price: model.usd };
}

function refused(status: number, code: string, message: string): Refusal {
  return new Refusal(status, { detail: { status: code, message } });
}

function missing(field: string) {
  return { detail: [{ type: 'missing', loc: ['body', field], msg: 'Field required', input: null }] };
}
