/** Deepgram's `POST /v1/listen`, billed by the minute, and `POST /v1/speak`, billed by the character. */
import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bill } from '../bill.ts';
import { type Directive, readDirective } from '../provider/directive.ts';
import { FaultCounter, failedOutright } from '../provider/faults.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import { mp3, secondsToSay } from './files/sounds.ts';
import { millisecondsOf } from './length/recording.ts';

/** USD for a minute. */
const LISTENS: Readonly<Record<string, { readonly usd: string; readonly multilingual: string }>> = {
  'nova-3': { usd: '0.0043', multilingual: '0.0052' },
  'nova-2': { usd: '0.0043', multilingual: '0.0043' },
};
/** USD for 1,000 characters. */
const SPEAKS = { usd: '0.030', most: 2_000, voice: /^aura-2-[a-z]+-[a-z]{2}$/ };
const TRANSCRIPT = 'Every coin that comes in is written down.';
const STATUS = { '400': 400, '429': 429, '500': 500, overloaded: 503 } as const;

export function deepgramRoutes(bill: Bill): Routes {
  const faults = new FaultCounter();
  /** @returns what the bill is to say of a fault, or undefined where the request came to its end */
  const survived = async (call: Call, directive: Directive) => {
    const fault = faults.next(directive, 'deepgram');
    if (directive.latency > 0) await delay(directive.latency, undefined, { ref: false });
    const ended = failedOutright(fault, call, (kind) =>
      refused(STATUS[kind], 'INSTRUCTED', 'As the sandbox was instructed.'),
    );
    return ended ? undefined : { fault };
  };
  return {
    'POST /deepgram/v1/listen': async (call) => {
      assertKey(call);
      const { model = 'base', language = 'en' } = Object.fromEntries(call.query);
      const price = LISTENS[model];
      if (!price) throw refused(400, 'INVALID_QUERY_PARAMETER', `No such model: ${model}`);
      const recording = await call.body();
      const milliseconds = millisecondsOf(recording);
      if (milliseconds === undefined) throw refused(400, 'Bad Request', 'Corrupt or unsupported data');
      const directive = readDirective(recording.toString('latin1'));
      const survivor = await survived(call, directive);
      if (!survivor) return;
      const id = randomUUID();
      const perMinute = language === 'multi' ? price.multilingual : price.usd;
      const units = { unit: 'minute', quantity: milliseconds, per: 60_000, price: perMinute };
      bill.chargeUnits(id, model, units, survivor.fault);
      const duration = milliseconds / 1_000;
      call.json(200, transcription({ id, model, recording, duration, transcript: directive.text ?? TRANSCRIPT }));
    },
    'POST /deepgram/v1/speak': async (call) => {
      assertKey(call);
      const voice = call.query.get('model') ?? 'aura-2-thalia-en';
      if (!SPEAKS.voice.test(voice)) throw refused(400, 'INVALID_QUERY_PARAMETER', `No such model: ${voice}`);
      const { text } = parseObject((await call.body()).toString()) ?? {};
      if (typeof text !== 'string' || text === '') throw refused(400, 'PAYLOAD_ERROR', 'The field text must be there');
      const quantity = [...text].length;
      if (quantity > SPEAKS.most) throw refused(413, 'INPUT_TOO_LONG', `At most ${SPEAKS.most} characters are spoken`);
      const survivor = await survived(call, readDirective(text));
      if (!survivor) return;
      const id = randomUUID();
      const units = { unit: '1k_characters', quantity, per: 1_000, price: SPEAKS.usd };
      bill.chargeUnits(id, voice, units, survivor.fault);
      const headers = { 'dg-request-id': id, 'dg-model-name': voice, 'dg-char-count': quantity };
      call.bytes(200, 'audio/mpeg', mp3(text, secondsToSay(quantity)), headers);
    },
  };
}

interface Transcription {
  readonly id: string;
  readonly model: string;
  readonly recording: Buffer;
  /** Seconds. */
  readonly duration: number;
  readonly transcript: string;
}

function transcription({ id, model, recording, duration, transcript }: Transcription) {
  const spoken = transcript.split(' ').filter((word) => word !== '');
  const each = duration / Math.max(spoken.length, 1);
  const words = spoken.map((word, i) => ({
    word: word.toLowerCase().replace(/[^\p{L}\p{N}']/gu, ''),
    start: Number((i * each).toFixed(3)),
    end: Number(((i + 1) * each).toFixed(3)),
    confidence: 0.99,
    punctuated_word: word,
  }));
  const version = 'sandbox';
  return {
    metadata: {
      transaction_key: 'deprecated',
      request_id: id,
      sha256: createHash('sha256').update(recording).digest('hex'),
      created: new Date().toISOString(),
      duration,
      channels: 1,
      models: [version],
      model_info: { [version]: { name: `general-${model}`, version, arch: model } },
    },
    results: { channels: [{ alternatives: [{ transcript, confidence: 0.99, words }] }] },
  };
}

function assertKey({ request }: Call): void {
  if (/^(Token|Bearer) \S/i.test(request.headers.authorization ?? '')) return;
  throw refused(401, 'INVALID_AUTH', 'Invalid credentials.');
}

function refused(status: number, code: string, message: string): Refusal {
  return new Refusal(status, { err_code: code, err_msg: message, request_id: randomUUID() });
}
