/**
 * Deepgram's `POST /v1/listen`, billed by the length of the audio: once, or with `multichannel` for each channel. A
 * directive may be anywhere among the bytes of the recording.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { type Call, parseObject, type Routes } from '../../router.ts';
import { DirectiveRunner, findDirectiveText, isForbidden } from '../directive-runner.ts';
import { measureAudio } from '../duration/recording.ts';
import { isBilled, sendResponse } from '../sandbox-file.ts';
import { createTranscript } from '../transcript.ts';
import { assertKey, createError, createFaultError } from './errors.ts';
import { type ListenOptions, toResults } from './results.ts';

interface ListenModel {
  /** USD per minute. */
  readonly usd: string;
  /** USD per minute with `language=multi`. */
  readonly multilingual: string;
  readonly languages: readonly string[];
}

const LANGUAGES = [
  'en',
  'multi',
  'es',
  'fr',
  'de',
  'hi',
  'ru',
  'pt',
  'ja',
  'it',
  'nl',
  'bg',
  'ca',
  'zh',
  'cs',
  'da',
  'et',
  'fi',
  'el',
  'hu',
  'id',
  'ko',
  'lv',
  'lt',
  'ms',
  'no',
  'pl',
  'ro',
  'sk',
  'sv',
  'th',
  'tr',
  'uk',
  'vi',
];
const MODELS: Readonly<Record<string, ListenModel>> = {
  'nova-3': { usd: '0.0043', multilingual: '0.0052', languages: LANGUAGES },
  'nova-2': { usd: '0.0043', multilingual: '0.0043', languages: LANGUAGES },
};
/** Price factor for requests whose recordings must not be used for training (`mip_opt_out`). */
const OPTED_OUT = 2;
const FETCHED_WITHIN_MS = 10_000;

export function listenRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('deepgram', createFaultError);
  return {
    'POST /deepgram/v1/listen': async (call) => {
      assertKey(call);
      const { model, price, options } = parseQuery(call.query);
      const recording = await loadRecording(call);
      const audio = measureAudio(recording);
      if (!audio)
        throw createError(400, 'Bad Request', 'Bad Request: failed to process audio: corrupt or unsupported data');
      const applied = await directiveRunner.runDirective(call, findDirectiveText(recording));
      if (!applied) return;
      const id = randomUUID();
      const channels = options.multichannel ? audio.channels : 1;
      const times = channels * (options.mip_opt_out ? OPTED_OUT : 1);
      const units = { unit: 'minute', quantity: Math.round(audio.seconds * 1_000) * times, per: 60_000, price };
      if (isBilled(applied.fault)) bill.chargeUnits(id, model, units, applied.fault);
      if (isForbidden(applied)) throw createError(400, 'Bad Request', 'The content is against the rules.');
      const duration = Math.round(audio.seconds * 1_000) / 1_000;
      const metadata = createMetadata(id, model, recording, { duration, channels });
      const results = toResults(createTranscript(applied.directive.text, duration), channels, options);
      sendResponse(call, { metadata, results }, applied.fault, { 'dg-request-id': id });
    },
  };
}

function parseQuery(query: URLSearchParams) {
  const { model = 'base', language = 'en' } = Object.fromEntries(query);
  const listenModel = MODELS[model];
  const [spoken = ''] = language.split('-');
  if (!listenModel?.languages.includes(spoken))
    throw createError(400, 'INVALID_QUERY_PARAMETER', 'Bad Request: No such model/language/tier combination found.');
  const isOn = (name: string) => {
    const value = query.get(name) ?? 'false';
    if (value === 'true' || value === 'false') return value === 'true';
    throw createError(
      400,
      'INVALID_QUERY_PARAMETER',
      `Failed to deserialize query parameters: ${name}: provided string was not \`true\` or \`false\``,
    );
  };
  const options: ListenOptions = {
    language,
    smart_format: isOn('smart_format'),
    punctuate: isOn('punctuate'),
    paragraphs: isOn('paragraphs'),
    utterances: isOn('utterances'),
    diarize: isOn('diarize'),
    multichannel: isOn('multichannel'),
    detect_language: isOn('detect_language'),
    mip_opt_out: isOn('mip_opt_out'),
  };
  return { model, price: language === 'multi' ? listenModel.multilingual : listenModel.usd, options };
}

/**
 * Returns the body, or, if its type is JSON, the file at the URL in it.
 * @throws HttpError 400 if the JSON has no URL, or the URL does not respond with success
 */
async function loadRecording(call: Call): Promise<Buffer> {
  const body = await call.readBody();
  if (!call.request.headers['content-type']?.startsWith('application/json')) return body;
  const { url } = parseObject(body.toString()) ?? {};
  if (typeof url !== 'string')
    throw createError(400, 'PAYLOAD_ERROR', 'Failed to deserialize JSON payload: missing field `url`');
  const unreachable = () =>
    createError(400, 'REMOTE_CONTENT_ERROR', 'The remote server hosting the media returned a client error.');
  // reported as unreachable
  const response = await fetch(url, { signal: AbortSignal.timeout(FETCHED_WITHIN_MS) }).catch(() => undefined);
  if (!response?.ok) throw unreachable();
  return Buffer.from(await response.arrayBuffer());
}

interface RecordingDetails {
  readonly duration: number;
  readonly channels: number;
}

function createMetadata(id: string, model: string, recording: Buffer, details: RecordingDetails) {
  const version = '00000000-0000-4000-8000-000000000000';
  return {
    transaction_key: 'deprecated',
    request_id: id,
    sha256: createHash('sha256').update(recording).digest('hex'),
    created: new Date().toISOString(),
    ...details,
    models: [version],
    model_info: { [version]: { name: `general-${model}`, version: '2026-01-01.0', arch: model } },
  };
}
