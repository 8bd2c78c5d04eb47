/**
 * OpenAI's speech and transcriptions: https://platform.openai.com/docs/api-reference/audio. Models that are billed by
 * characters and by the length of a recording; those that are billed by tokens of sound are not sold.
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

export async function openAiSpeech(
  http: ProviderHttp,
  headers: Headers,
  { model, input, voice, parameters, signal }: SpeechCall,
): Promise<SpeechAudio> {
  const { response_format = 'mp3', speed = 1 } = parameters;
  const answer = await http.request('/audio/speech', {
    method: 'POST',
    headers,
    body: { model, input, voice, response_format, speed },
    signal,
    refusalOf: toUpstreamErrorFromResponse,
  });
  return toSpeechAudio(answer, { characters: undefined, vendorId: requestIdIn(answer.headers) });
}

/** The name of the file says what it is: that vendor judges by it. Words and segments cost nothing more. */
export async function openAiTranscription(
  http: ProviderHttp,
  headers: Headers,
  { model, file, parameters, signal }: TranscriptionCall,
): Promise<Transcript> {
  const { language, prompt, temperature } = parameters;
  const form = new FormData();
  form.set('file', await openAsBlob(file.path, { type: file.mediaType }), file.name);
  form.set('model', model);
  form.set('response_format', 'verbose_json');
  for (const each of ['segment', 'word']) form.append('timestamp_granularities[]', each);
  if (language !== undefined && language !== 'multi') form.set('language', String(language));
  if (prompt !== undefined) form.set('prompt', String(prompt));
  if (temperature !== undefined) form.set('temperature', String(temperature));
  const answer = await http.request('/audio/transcriptions', {
    method: 'POST',
    headers,
    body: form,
    signal,
    refusalOf: toUpstreamErrorFromResponse,
  });
  return transcriptIn(await answer.json(), requestIdIn(answer.headers));
}

function requestIdIn(headers: ResponseHeaders): string | undefined {
  return parseProviderRequestId({ id: headers['x-request-id'] });
}

interface Heard {
  readonly text?: unknown;
  readonly language?: unknown;
  readonly duration?: unknown;
  readonly usage?: { readonly seconds?: unknown };
  readonly segments?: unknown;
  readonly words?: unknown;
}

/** It bills whole seconds, which its `usage` says. */
function transcriptIn(answer: unknown, vendorId: string | undefined): Transcript {
  const { text, language, duration, usage, segments, words } = (answer ?? {}) as Heard;
  if (typeof text !== 'string')
    throw new UpstreamError('upstream_error', 'The upstream sent an answer that is no transcript', {
      status: 200,
      deliveredText: '',
      vendorId,
    });
  return {
    text,
    language: parseNonEmptyText(language),
    segments: timed(segments, 'text', (text, times): SpokenSegment => ({ text: text.trim(), ...times })),
    words: timed(words, 'word', (word, times): SpokenWord => ({ word: word.trim(), ...times })),
    seconds: parseSeconds(duration),
    milliseconds:
      parseMilliseconds(usage?.seconds) ?? parseMilliseconds(Math.ceil(parseSeconds(duration) ?? Number.NaN)),
    vendorId,
  };
}

function timed<T>(
  list: unknown,
  field: 'text' | 'word',
  of: (text: string, times: { readonly start: number; readonly end: number }) => T,
): readonly T[] {
  return (Array.isArray(list) ? (list as readonly (Readonly<Record<string, unknown>> | null)[]) : []).flatMap(
    (each) => {
      const text = parseNonEmptyText(each?.[field]);
      const start = parseSeconds(each?.start);
      const end = parseSeconds(each?.end);
      return text === undefined || start === undefined || end === undefined ? [] : [of(text, { start, end })];
    },
  );
}
