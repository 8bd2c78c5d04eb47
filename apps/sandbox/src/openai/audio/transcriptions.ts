/**
 * `POST /openai/v1/audio/transcriptions`, billed by the second, rounded up. A directive may be in the prompt or
 * anywhere among the bytes of the recording.
 */
import { randomUUID } from 'node:crypto';
import type { SandboxBill } from '../../bill.ts';
import { DirectiveRunner, findDirectiveText, isForbidden } from '../../media/directive-runner.ts';
import { measureAudio } from '../../media/duration/recording.ts';
import { dropResponse } from '../../media/sandbox-file.ts';
import { createTranscript, normalizeWord, type SandboxTranscript } from '../../media/transcript.ts';
import type { Routes } from '../../router.ts';
import { assertKey, createError, createFaultError, invalidRequestError } from '../errors.ts';
import { parseForm } from '../forms.ts';

/** USD per minute. Models that are billed by audio tokens are not simulated. */
export const TRANSCRIPTION_MODELS: Readonly<Record<string, string>> = { 'whisper-1': '0.006' };
const EXTENSIONS = ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm'];
const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt'];
const MAX_BYTES = 25 * 1024 * 1024;
const MIN_SECONDS = 0.1;
const LANGUAGES = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });

export function transcriptionRoutes(bill: SandboxBill): Routes {
  const directiveRunner = new DirectiveRunner('openai', createFaultError);
  return {
    'POST /openai/v1/audio/transcriptions': async (call) => {
      assertKey(call);
      const request = await parseRequest(await parseForm(call));
      const applied = await directiveRunner.runDirective(call, request.directiveText);
      if (!applied) return;
      const id = `req_${randomUUID()}`;
      const seconds = Math.ceil(request.seconds);
      const units = { unit: 'minute', quantity: seconds, per: 60, price: request.price };
      if (!isForbidden(applied) || applied.fault === 'policy_billed')
        bill.chargeUnits(id, request.model, units, applied.fault);
      if (isForbidden(applied))
        throw createError('invalid_request_error', 400, 'Your request was rejected.', {
          code: 'content_policy_violation',
        });
      if (applied.fault === 'lost') return dropResponse(call);
      const result = createResponseBody(request, createTranscript(applied.directive.text, request.seconds), seconds);
      const headers = { 'x-request-id': id };
      if (typeof result !== 'string')
        call.sendJson(200, applied.fault === 'no_usage' ? { ...result, usage: undefined } : result, headers);
      else call.sendBytes(200, 'text/plain; charset=utf-8', Buffer.from(result), headers);
    },
  };
}

interface ParsedTranscriptionRequest {
  readonly model: string;
  readonly price: string;
  readonly format: string;
  readonly language: string;
  readonly granularities: readonly string[];
  readonly seconds: number;
  readonly directiveText: string;
}

async function parseRequest(form: FormData): Promise<ParsedTranscriptionRequest> {
  const file = form.get('file');
  const model = String(form.get('model') ?? '');
  const price = TRANSCRIPTION_MODELS[model];
  const language = String(form.get('language') ?? 'en');
  const format = String(form.get('response_format') ?? 'json');
  const granularities = form.getAll('timestamp_granularities[]').map(String);
  if (!(file instanceof File)) throw invalidRequestError(400, "Missing required parameter: 'file'.", 'file');
  if (price === undefined)
    throw invalidRequestError(
      404,
      `The model '${model}' does not exist or you do not have access to it.`,
      null,
      'model_not_found',
    );
  if (!FORMATS.includes(format))
    throw invalidRequestError(
      400,
      `Invalid value: '${format}'. Supported values are: ${FORMATS.join(', ')}.`,
      'response_format',
    );
  if (!/^[a-z]{2}$/.test(language) || LANGUAGES.of(language) === undefined)
    throw invalidRequestError(
      400,
      `Invalid language '${language}'. Language parameter must be specified in ISO-639-1 format.`,
      'language',
      'invalid_language_format',
    );
  if (granularities.length > 0 && format !== 'verbose_json')
    throw invalidRequestError(400, 'Timestamps are only for verbose_json.', 'timestamp_granularities');
  const { seconds, directiveText } = await parseRecording(file);
  return {
    model,
    price,
    format,
    language,
    granularities,
    seconds,
    directiveText: selectDirectiveText(directiveText, form.get('prompt')),
  };
}

function selectDirectiveText(recordingText: string, prompt: unknown): string {
  return typeof prompt === 'string' && prompt.includes('[[sandbox') ? prompt : recordingText;
}

async function parseRecording(file: File) {
  const extension = file.name.slice(file.name.lastIndexOf('.') + 1).toLowerCase();
  if (!EXTENSIONS.includes(extension))
    throw invalidRequestError(400, `Unrecognized file format. Supported formats: ${EXTENSIONS.join(', ')}`, 'file');
  if (file.size > MAX_BYTES)
    throw invalidRequestError(413, `Maximum content size limit (${MAX_BYTES}) exceeded.`, 'file');
  const bytes = Buffer.from(await file.arrayBuffer());
  const audio = measureAudio(bytes);
  if (!audio)
    throw invalidRequestError(400, 'The audio file could not be decoded or its format is not supported.', 'file');
  if (audio.seconds < MIN_SECONDS)
    throw invalidRequestError(
      400,
      'Audio file is too short. Minimum audio length is 0.1 seconds.',
      'file',
      'audio_too_short',
    );
  return { seconds: audio.seconds, directiveText: findDirectiveText(bytes) };
}

function createResponseBody(
  { format, language, granularities, seconds: duration }: ParsedTranscriptionRequest,
  transcript: SandboxTranscript,
  seconds: number,
) {
  const { text, words, sentences } = transcript;
  const usage = { type: 'duration', seconds };
  if (format === 'json') return { text, usage };
  if (format === 'text') return `${text}\n`;
  if (format === 'srt') return formatSubtitles(transcript, ',', (i) => `${i + 1}\n`);
  if (format === 'vtt') return `WEBVTT\n\n${formatSubtitles(transcript, '.', () => '')}`;
  const segments = sentences.map(({ text, start, end }, id) => {
    const odds = { temperature: 0, avg_logprob: -0.25, compression_ratio: 1, no_speech_prob: 0.01 };
    return { id, seek: 0, start, end, text: ` ${text}`, tokens: [50_364], ...odds };
  });
  const languageName = LANGUAGES.of(language)?.toLowerCase();
  return {
    task: 'transcribe',
    language: languageName,
    duration,
    text,
    ...(granularities.length === 0 || granularities.includes('segment') ? { segments } : {}),
    ...(granularities.includes('word')
      ? { words: words.map(({ punctuated, start, end }) => ({ word: normalizeWord(punctuated), start, end })) }
      : {}),
    usage,
  };
}

function formatSubtitles({ sentences }: SandboxTranscript, mark: string, head: (index: number) => string): string {
  return sentences
    .map(
      ({ text, start, end }, i) =>
        `${head(i)}${formatTimestamp(start, mark)} --> ${formatTimestamp(end, mark)}\n${text}\n\n`,
    )
    .join('');
}

function formatTimestamp(seconds: number, mark: string): string {
  const milliseconds = Math.round(seconds * 1_000);
  const padTwoDigits = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const [hours, minutes, rest] = [milliseconds / 3_600_000, (milliseconds / 60_000) % 60, (milliseconds / 1_000) % 60];
  return `${padTwoDigits(hours)}:${padTwoDigits(minutes)}:${padTwoDigits(rest)}${mark}${String(milliseconds % 1_000).padStart(3, '0')}`;
}
