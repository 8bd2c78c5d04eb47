/**
 * OpenAI's speech and transcriptions: https://platform.openai.com/docs/api-reference/audio. Only models that are billed
 * by characters or by the duration of a recording are supported, not those that are billed by audio tokens.
 */
import { openAsBlob } from 'node:fs';
import { FormData } from 'undici';
import {
  type SpeechAudio,
  type SpeechCall,
  type SpokenSegment,
  type SpokenWord,
  type Transcript,
  type TranscriptionCall,
  UpstreamError,
} from '#application';
import { toUpstreamErrorFromResponse } from '../../http/json-http-client.ts';
import {
  parseMilliseconds,
  parseNonEmptyText,
  parseProviderRequestId,
  parseSeconds,
} from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import type { ResponseHeaders } from '../../http/provider-request.ts';
import { toSpeechAudio } from '../../http/speech-response.ts';

type Headers = Readonly<Record<string, string>>;

export async function synthesizeSpeech(
  http: ProviderHttp,
  headers: Headers,
  { model, input, voice, parameters, signal }: SpeechCall,
): Promise<SpeechAudio> {
  const { response_format = 'mp3', speed = 1 } = parameters;
  const response = await http.request('/audio/speech', {
    method: 'POST',
    headers,
    body: { model, input, voice, response_format, speed },
    signal,
    mapErrorResponse: toUpstreamErrorFromResponse,
  });
  return toSpeechAudio(response, { characters: undefined, vendorId: getRequestId(response.headers) });
}

/** OpenAI detects the format of a recording by its file name. Timestamps of words and segments are free. */
export async function transcribe(
  http: ProviderHttp,
  headers: Headers,
  { model, file, parameters, signal }: TranscriptionCall,
): Promise<Transcript> {
  const { language, prompt, temperature } = parameters;
  const form = new FormData();
  form.set('file', await openAsBlob(file.path, { type: file.mediaType }), file.name);
  form.set('model', model);
  form.set('response_format', 'verbose_json');
  for (const granularity of ['segment', 'word']) form.append('timestamp_granularities[]', granularity);
  if (language !== undefined && language !== 'multi') form.set('language', String(language));
  if (prompt !== undefined) form.set('prompt', String(prompt));
  if (temperature !== undefined) form.set('temperature', String(temperature));
  const response = await http.request('/audio/transcriptions', {
    method: 'POST',
    headers,
    body: form,
    signal,
    mapErrorResponse: toUpstreamErrorFromResponse,
  });
  return parseTranscript(await response.json(), getRequestId(response.headers));
}

function getRequestId(headers: ResponseHeaders): string | undefined {
  return parseProviderRequestId({ id: headers['x-request-id'] });
}

interface OpenAiTranscription {
  readonly text?: unknown;
  readonly language?: unknown;
  readonly duration?: unknown;
  readonly usage?: { readonly seconds?: unknown };
  readonly segments?: unknown;
  readonly words?: unknown;
}

/** OpenAI bills full seconds, which `usage` reports. Without `usage` the duration is rounded up. */
function parseTranscript(body: unknown, providerRequestId: string | undefined): Transcript {
  const { text, language, duration, usage, segments, words } = (body ?? {}) as OpenAiTranscription;
  if (typeof text !== 'string')
    throw new UpstreamError('upstream_error', 'The provider sent a response that is not a transcript', {
      status: 200,
      deliveredText: '',
      vendorId: providerRequestId,
    });
  return {
    text,
    language: parseNonEmptyText(language),
    segments: parseTimed(segments, 'text', (text, times): SpokenSegment => ({ text: text.trim(), ...times })),
    words: parseTimed(words, 'word', (word, times): SpokenWord => ({ word: word.trim(), ...times })),
    seconds: parseSeconds(duration),
    milliseconds:
      parseMilliseconds(usage?.seconds) ?? parseMilliseconds(Math.ceil(parseSeconds(duration) ?? Number.NaN)),
    vendorId: providerRequestId,
  };
}

function parseTimed<T>(
  list: unknown,
  field: 'text' | 'word',
  create: (text: string, times: { readonly start: number; readonly end: number }) => T,
): readonly T[] {
  return (Array.isArray(list) ? (list as readonly (Readonly<Record<string, unknown>> | null)[]) : []).flatMap(
    (entry) => {
      const text = parseNonEmptyText(entry?.[field]);
      const start = parseSeconds(entry?.start);
      const end = parseSeconds(entry?.end);
      return text === undefined || start === undefined || end === undefined ? [] : [create(text, { start, end })];
    },
  );
}
