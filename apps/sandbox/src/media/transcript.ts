/** The transcript of a recording: the text of its directive or a fixed sentence, with times. */

const TRANSCRIPT = 'Every coin that comes in is written down.';

export interface TimedWord {
  /** As written, with the punctuation after it. */
  readonly punctuated: string;
  readonly start: number;
  readonly end: number;
}

export interface TimedSentence {
  readonly text: string;
  readonly words: readonly TimedWord[];
  readonly start: number;
  readonly end: number;
}

export interface SandboxTranscript {
  readonly text: string;
  readonly words: readonly TimedWord[];
  readonly sentences: readonly TimedSentence[];
}

/** Divides the recording into equal times, one for each word. */
export function createTranscript(text = TRANSCRIPT, seconds: number): SandboxTranscript {
  const spokenWords = text.split(/\s+/).filter((word) => word !== '');
  const secondsPerWord = seconds / Math.max(spokenWords.length, 1);
  const words = spokenWords.map((punctuated, i) => ({
    punctuated,
    start: roundToMs(i * secondsPerWord),
    end: roundToMs((i + 1) * secondsPerWord),
  }));
  const sentences: TimedWord[][] = [];
  let continuesSentence = false;
  for (const word of words) {
    if (continuesSentence) sentences.at(-1)?.push(word);
    else sentences.push([word]);
    continuesSentence = !/[.!?…]$/.test(word.punctuated);
  }
  return {
    text,
    words,
    sentences: sentences.map((sentence) => ({
      text: sentence.map(({ punctuated }) => punctuated).join(' '),
      words: sentence,
      start: sentence[0]?.start ?? 0,
      end: sentence.at(-1)?.end ?? 0,
    })),
  };
}

export function normalizeWord(word: string): string {
  return word.toLowerCase().replace(/[^\p{L}\p{N}']/gu, '');
}

function roundToMs(seconds: number): number {
  return Number(seconds.toFixed(3));
}
