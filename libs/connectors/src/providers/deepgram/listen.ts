/** Deepgram's transcriptions: https://developers.deepgram.com/reference/speech-to-text/listen-pre-recorded */
import { createReadStream } from 'node:fs';
import { type SpokenWord, type Transcript, type TranscriptionCall, UpstreamError } from '#application';
import {
  parseMilliseconds,
  parseNonEmptyText,
  parseProviderRequestId,
  parseSeconds,
} from '../../http/parse-reported.ts';
import type { ProviderHttp } from '../../http/provider-http.ts';
import { getRequestId, toDeepgramError } from './errors.ts';

/** Every option that affects the price is sent, so that no default at Deepgram can change the price. */
const PRICED_OPTIONS = { multichannel: 'false', diarize: 'false', mip_opt_out: 'false' };

export async function transcribe(
  http: ProviderHttp,
  headers: Readonly<Record<string, string>>,
  { model, file, parameters, signal }: TranscriptionCall,
): Promise<Transcript> {
  const language = String(parameters.language ?? 'en');
  const query = new URLSearchParams({ model, language, smart_format: 'true', ...PRICED_OPTIONS });
  const response = await http.request(`/v1/listen?${query}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': file.mediaType, 'content-length': String(file.size) },
    body: createReadStream(file.path),
    signal,
    mapErrorResponse: toDeepgramError,
  });
  return parseTranscript(await response.json(), getRequestId(response.headers));
}

interface DeepgramTranscription {
  readonly metadata?: { readonly request_id?: unknown; readonly duration?: unknown };
  readonly results?: { readonly channels?: readonly Channel[] };
}

interface Channel {
  readonly detected_language?: unknown;
  readonly alternatives?: readonly { readonly transcript?: unknown; readonly words?: unknown; languages?: unknown }[];
}

function parseTranscript(body: unknown, id: string | undefined): Transcript {
  const { metadata, results } = (body ?? {}) as DeepgramTranscription;
  const providerRequestId = parseProviderRequestId({ id: metadata?.request_id }) ?? id;
  const [channel] = Array.isArray(results?.channels) ? results.channels : [];
  const [alternative] = Array.isArray(channel?.alternatives) ? channel.alternatives : [];
  if (typeof alternative?.transcript !== 'string')
    throw new UpstreamError('upstream_error', 'The provider sent a response that is not a transcript', {
      status: 200,
      deliveredText: '',
      vendorId: providerRequestId,
    });
  const [language] = Array.isArray(alternative.languages) ? alternative.languages : [];
  return {
    text: alternative.transcript,
    language: parseNonEmptyText(channel?.detected_language) ?? parseNonEmptyText(language),
    segments: [],
    words: parseWords(alternative.words),
    seconds: parseSeconds(metadata?.duration),
    milliseconds: parseMilliseconds(metadata?.duration),
    vendorId: providerRequestId,
  };
}

interface Word {
  readonly word?: unknown;
  readonly punctuated_word?: unknown;
  readonly start?: unknown;
  readonly end?: unknown;
}

function parseWords(words: unknown): readonly SpokenWord[] {
  return (Array.isArray(words) ? (words as readonly (Word | null)[]) : []).flatMap((entry) => {
    const word = parseNonEmptyText(entry?.punctuated_word) ?? parseNonEmptyText(entry?.word);
    const start = parseSeconds(entry?.start);
    const end = parseSeconds(entry?.end);
    return word === undefined || start === undefined || end === undefined ? [] : [{ word, start, end }];
  });
}
