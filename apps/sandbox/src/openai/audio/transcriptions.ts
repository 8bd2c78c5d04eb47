/** `POST /openai/v1/audio/transcriptions`, billed by whole seconds. A directive may stand among the bytes of the recording, or in the prompt. */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { soundIn } from '../../media/duration/recording.ts';
import { Instructions, isForbidden, wordsAmong } from '../../media/instructions.ts';
import { loseAnswer } from '../../media/sandbox-file.ts';
import { bare, type SandboxTranscript, transcriptOf } from '../../media/transcript.ts';
import type { Routes } from '../../router.ts';
import { assertKey, refusal, refusalAsTold, refusalOf } from '../errors.ts';
import { formIn } from '../forms.ts';

/** USD for a minute. Those that are billed by tokens of sound are not played. */
export const TRANSCRIPTION_MODELS: Readonly<Record<string, string>> = { 'whisper-1': '0.006' };
const EXTENSIONS = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'];
const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt'];
const MOST_BYTES = 25 * 1024 * 1024;
const LEAST_SECONDS = 0.1;
const LANGUAGES = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });

export function transcriptionRoutes(bill: SandboxBill): Routes {
  const instructions = new Instructions('openai', refusalAsTold);
  return {
    'POST /openai/v1/audio/transcriptions': async (call) => {
      assertKey(call);
      const asked = await askedIn(await formIn(call));
      const told = await instructions.follow(call, asked.words);
      if (!told) return;
      const id = `req_${randomUUID()}`;
      const seconds = Math.ceil(asked.seconds);
      const units = { unit: 'minute', quantity: seconds, per: 60, price: asked.price };
      if (!isForbidden(told) || told.fault === 'policy_billed') bill.chargeUnits(id, asked.model, units, told.fault);
      if (isForbidden(told))
        throw refusalOf('invalid_request_error', 400, 'Your request was rejected.', {
          code: 'content_policy_violation',
        });
      if (told.fault === 'lost') return loseAnswer(call);
      const answer = answerTo(asked, transcriptOf(told.directive.text, asked.seconds), seconds);
      const headers = { 'x-request-id': id };
      if (typeof answer !== 'string')
        call.json(200, told.fault === 'no_usage' ? { ...answer, usage: undefined } : answer, headers);
      else call.bytes(200, 'text/plain; charset=utf-8', Buffer.from(answer), headers);
    },
  };
}

interface Asked {
  readonly model: string;
  readonly price: string;
  readonly format: string;
  readonly language: string;
  readonly granularities: readonly string[];
  readonly seconds: number;
  readonly words: string;
}

async function askedIn(form: FormData): Promise<Asked> {
  const file = form.get('file');
  const model = String(form.get('model') ?? '');
  const price = TRANSCRIPTION_MODELS[model];
  const language = String(form.get('language') ?? 'en');
  const format = String(form.get('response_format') ?? 'json');
  const granularities = form.getAll('timestamp_granularities[]').map(String);
  if (!(file instanceof File)) throw refusal(400, "Missing required parameter: 'file'.", 'file');
  if (price === undefined)
    throw refusal(404, `The model '${model}' does not exist or you do not have access to it.`, null, 'model_not_found');
  if (!FORMATS.includes(format))
    throw refusal(400, `Invalid value: '${format}'. Supported values are: ${FORMATS.join(', ')}.`, 'response_format');
  if (!/^[a-z]{2}$/.test(language) || LANGUAGES.of(language) === undefined)
    throw refusal(
      400,
      `Invalid language '${language}'. Language parameter must be specified in ISO-639-1 format.`,
      'language',
      'invalid_language_format',
    );
  if (granularities.length > 0 && format !== 'verbose_json')
    throw refusal(400, 'Timestamps are only for verbose_json.', 'timestamp_granularities');
  const { seconds, words } = await recordingIn(file);
  return { model, price, format, language, granularities, seconds, words: directiveIn(words, form.get('prompt')) };
}

function directiveIn(words: string, prompt: unknown): string {
  return typeof prompt === 'string' && prompt.includes('[[sandbox') ? prompt : words;
}

async function recordingIn(file: File) {
  const extension = file.name.slice(file.name.lastIndexOf('.') + 1).toLowerCase();
  if (!EXTENSIONS.includes(extension))
    throw refusal(400, `Unrecognized file format. Supported formats: ${EXTENSIONS.join(', ')}`, 'file');
  if (file.size > MOST_BYTES) throw refusal(413, `Maximum content size limit (${MOST_BYTES}) exceeded.`, 'file');
  const bytes = Buffer.from(await file.arrayBuffer());
  const sound = soundIn(bytes);
  if (!sound) throw refusal(400, 'The audio file could not be decoded or its format is not supported.', 'file');
  if (sound.seconds < LEAST_SECONDS)
    throw refusal(400, 'Audio file is too short. Minimum audio length is 0.1 seconds.', 'file', 'audio_too_short');
  return { seconds: sound.seconds, words: wordsAmong(bytes) };
}

function answerTo(
  { format, language, granularities, seconds: duration }: Asked,
  transcript: SandboxTranscript,
  seconds: number,
) {
  const { text, words, sentences } = transcript;
  const usage = { type: 'duration', seconds };
  if (format === 'json') return { text, usage };
  if (format === 'text') return `${text}\n`;
  if (format === 'srt') return subtitles(transcript, ',', (i) => `${i + 1}\n`);
  if (format === 'vtt') return `WEBVTT\n\n${subtitles(transcript, '.', () => '')}`;
  const segments = sentences.map(({ text, start, end }, id) => {
    const odds = { temperature: 0, avg_logprob: -0.25, compression_ratio: 1, no_speech_prob: 0.01 };
    return { id, seek: 0, start, end, text: ` ${text}`, tokens: [50_364], ...odds };
  });
  const named = LANGUAGES.of(language)?.toLowerCase();
  return {
    task: 'transcribe',
    language: named,
    duration,
    text,
    ...(granularities.length === 0 || granularities.includes('segment') ? { segments } : {}),
    ...(granularities.includes('word')
      ? { words: words.map(({ written, start, end }) => ({ word: bare(written), start, end })) }
      : {}),
    usage,
  };
}

function subtitles({ sentences }: SandboxTranscript, mark: string, head: (index: number) => string): string {
  return sentences
    .map(({ text, start, end }, i) => `${head(i)}${clock(start, mark)} --> ${clock(end, mark)}\n${text}\n\n`)
    .join('');
}

function clock(seconds: number, mark: string): string {
  const milliseconds = Math.round(seconds * 1_000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const [hours, minutes, rest] = [milliseconds / 3_600_000, (milliseconds / 60_000) % 60, (milliseconds / 1_000) % 60];
  return `${two(hours)}:${two(minutes)}:${two(rest)}${mark}${String(milliseconds % 1_000).padStart(3, '0')}`;
}
