/** What was said in a recording, which is what a directive in it has been told to say, and when. */

const TRANSCRIPT = 'Every coin that comes in is written down.';

export interface TimedWord {
  /** As it is written, with the punctuation behind it. */
  readonly written: string;
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

/** Each word takes as long as any other. */
export function transcriptOf(text = TRANSCRIPT, seconds: number): SandboxTranscript {
  const spoken = text.split(/\s+/).filter((word) => word !== '');
  const each = seconds / Math.max(spoken.length, 1);
  const words = spoken.map((written, i) => ({ written, start: rounded(i * each), end: rounded((i + 1) * each) }));
  const sentences: TimedWord[][] = [];
  let goesOn = false;
  for (const word of words) {
    if (goesOn) sentences.at(-1)?.push(word);
    else sentences.push([word]);
    goesOn = !/[.!?…]$/.test(word.written);
  }
  return {
    text,
    words,
    sentences: sentences.map((of) => ({
      text: of.map(({ written }) => written).join(' '),
      words: of,
      start: of[0]?.start ?? 0,
      end: of.at(-1)?.end ?? 0,
    })),
  };
}

export function bare(word: string): string {
  return word.toLowerCase().replace(/[^\p{L}\p{N}']/gu, '');
}

function rounded(seconds: number): number {
  return Number(seconds.toFixed(3));
}
