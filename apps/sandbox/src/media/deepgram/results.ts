/** Creates the results of Deepgram's transcription, with the requested options. */
import { normalizeWord, type SandboxTranscript, type TimedWord } from '../transcript.ts';

export interface ListenOptions {
  readonly language: string;
  readonly smart_format: boolean;
  readonly punctuate: boolean;
  readonly paragraphs: boolean;
  readonly utterances: boolean;
  readonly diarize: boolean;
  readonly multichannel: boolean;
  readonly detect_language: boolean;
  readonly mip_opt_out: boolean;
}

const CONFIDENCE = 0.99;

/** All channels have the same transcript. */
export function toResults(transcript: SandboxTranscript, channels: number, options: ListenOptions) {
  const channel = toChannel(transcript, options);
  const { utterances } = options;
  return {
    channels: Array.from({ length: channels }, () => channel),
    ...(utterances ? { utterances: toUtterances(transcript, channels, options) } : {}),
  };
}

function toChannel({ text, words, sentences }: SandboxTranscript, options: ListenOptions) {
  const writes = options.smart_format || options.punctuate;
  const detected = { detected_language: 'en', language_confidence: CONFIDENCE };
  const paragraph = {
    sentences: sentences.map(({ text, start, end }) => ({ text, start, end })),
    num_words: words.length,
    start: sentences[0]?.start ?? 0,
    end: sentences.at(-1)?.end ?? 0,
    ...(options.diarize ? { speaker: 0 } : {}),
  };
  const paragraphs = { transcript: `\n${text}`, paragraphs: [paragraph] };
  const alternative = {
    transcript: writes ? text : words.map(({ punctuated }) => normalizeWord(punctuated)).join(' '),
    confidence: words.length > 0 ? CONFIDENCE : 0,
    words: words.map((word) => toWord(word, options)),
    ...(options.paragraphs || options.smart_format ? { paragraphs } : {}),
    ...(options.language === 'multi' ? { languages: ['en'] } : {}),
  };
  return { alternatives: [alternative], ...(options.detect_language ? detected : {}) };
}

function toWord({ punctuated, start, end }: TimedWord, options: ListenOptions) {
  return {
    word: normalizeWord(punctuated),
    start,
    end,
    confidence: CONFIDENCE,
    ...(options.diarize ? { speaker: 0, speaker_confidence: CONFIDENCE } : {}),
    ...(options.smart_format || options.punctuate ? { punctuated_word: punctuated } : {}),
    ...(options.language === 'multi' ? { language: 'en' } : {}),
  };
}

function toUtterances({ sentences }: SandboxTranscript, channels: number, options: ListenOptions) {
  return Array.from({ length: channels }, (_, channel) =>
    sentences.map(({ text: transcript, words, start, end }, i) => ({
      start,
      end,
      confidence: CONFIDENCE,
      channel,
      transcript,
      words: words.map((word) => toWord(word, options)),
      ...(options.diarize ? { speaker: 0 } : {}),
      id: `00000000-0000-4000-8000-${String(channel * 1_000 + i).padStart(12, '0')}`,
    })),
  ).flat();
}
