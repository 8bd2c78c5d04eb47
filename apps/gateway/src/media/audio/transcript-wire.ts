/** Transcripts in the formats of OpenAI's API. */
import type { Transcription } from '#application';
import { toUsdJsonNumber } from '#kernel';
import { formatSrt, formatVtt, toSegments } from './subtitles.ts';

export const TRANSCRIPT_FORMATS = ['json', 'text', 'srt', 'vtt', 'verbose_json'] as const;
export type TranscriptFormat = (typeof TRANSCRIPT_FORMATS)[number];

export interface FormattedTranscript {
  readonly mediaType: string;
  readonly body: string;
}

export function formatTranscript(transcription: Transcription, format: TranscriptFormat): FormattedTranscript {
  const { transcript, language } = transcription;
  const segments = () => toSegments(transcript, language, getSeconds(transcription));
  switch (format) {
    case 'json':
      return createJsonTranscript({ text: transcript.text, usage: toUsage(transcription) });
    case 'text':
      return { mediaType: 'text/plain; charset=utf-8', body: `${transcript.text}\n` };
    case 'srt':
      return { mediaType: 'application/x-subrip; charset=utf-8', body: formatSrt(segments()) };
    case 'vtt':
      return { mediaType: 'text/vtt; charset=utf-8', body: formatVtt(segments()) };
    default:
      return createJsonTranscript(toVerboseTranscript(transcription));
  }
}

function createJsonTranscript(body: object): FormattedTranscript {
  return { mediaType: 'application/json; charset=utf-8', body: JSON.stringify(body) };
}

function getSeconds({ transcript, milliseconds }: Transcription): number {
  return transcript.seconds ?? milliseconds / 1_000;
}

function toUsage({ milliseconds, receipt }: Transcription) {
  return { type: 'duration', seconds: Math.ceil(milliseconds / 1_000), cost: toUsdJsonNumber(receipt.charged) };
}

/** Fields of OpenAI that are not measured here, with the values of a segment that was recognised with certainty. */
const CERTAIN_SEGMENT_FIELDS = { tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };

function toVerboseTranscript(transcription: Transcription) {
  const { transcript, language } = transcription;
  const duration = getSeconds(transcription);
  const segments = toSegments(transcript, language, duration).map(({ text, start, end }, id) => ({
    id,
    seek: Math.round(start * 100),
    start,
    end,
    text,
    ...CERTAIN_SEGMENT_FIELDS,
  }));
  return {
    task: 'transcribe',
    language,
    duration,
    text: transcript.text,
    segments,
    words: transcript.words,
    usage: toUsage(transcription),
  };
}
