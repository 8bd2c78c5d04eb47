/** Subtitles of a transcript: SubRip, and WebVTT (https://www.w3.org/TR/webvtt1/). */
import type { SpokenSegment, SpokenWord, Transcript } from '#application';

/** Two lines of a television's subtitles. */
const MOST_CHARACTERS = 84;
const MOST_SECONDS = 7;
const PAUSE_SECONDS = 0.8;
/** What cannot be read in time is shown for this long. */
const LEAST_SECONDS = 0.001;
/** Breaks and what cannot be seen. */
const UNSHOWN = /[\s\p{Cc}]+/gu;
/** Languages whose words are written together. */
const WITHOUT_SPACES: ReadonlySet<string> = new Set(['ja', 'zh', 'th', 'lo', 'km', 'my']);
const ENDS_SENTENCE = /[.!?…。！？]["'”’)\]]*$/;

/**
 * What is said at a time: segments as the vendor has them, as long as they can be read at once; else words put together.
 * @param seconds the length of the recording, of which a text without any times is one segment
 */
export function toSegments(
  { segments, words, text }: Transcript,
  language: string,
  seconds: number,
): readonly SpokenSegment[] {
  const glue = WITHOUT_SPACES.has(language.slice(0, 2)) ? '' : ' ';
  if (segments.length > 0) return inOrder(segments);
  if (words.length > 0) return inOrder(joined(words, glue));
  return text.trim() === '' ? [] : [{ text: text.trim(), start: 0, end: Math.max(seconds, LEAST_SECONDS) }];
}

/** Lines of readable length and time, which end where a sentence or a pause does. */
function joined(words: readonly SpokenWord[], glue: string): readonly SpokenSegment[] {
  const lines: SpokenSegment[] = [];
  let line: SpokenSegment | undefined;
  for (const { word, start, end } of words) {
    const grown: SpokenSegment | undefined = line && { text: line.text + glue + word, start: line.start, end };
    const fits =
      line &&
      grown &&
      grown.text.length <= MOST_CHARACTERS &&
      end - line.start <= MOST_SECONDS &&
      start - line.end < PAUSE_SECONDS &&
      !ENDS_SENTENCE.test(line.text);
    if (line && !fits) lines.push(line);
    line = fits ? grown : { text: word, start, end };
  }
  return line ? [...lines, line] : lines;
}

/** None ends before it starts, or starts before the one before has ended; none is empty. */
function inOrder(segments: readonly SpokenSegment[]): readonly SpokenSegment[] {
  const ordered: SpokenSegment[] = [];
  let last = 0;
  for (const segment of [...segments].sort((a, b) => a.start - b.start)) {
    const text = segment.text.toWellFormed().replace(UNSHOWN, ' ').trim();
    if (text === '') continue;
    const start = rounded(Math.max(segment.start, last));
    const end = rounded(Math.max(segment.end, start + LEAST_SECONDS));
    ordered.push({ text, start, end });
    last = end;
  }
  return ordered;
}

function rounded(seconds: number): number {
  return Math.round(seconds * 1_000) / 1_000;
}

/** An arrow would be taken for a line of times. */
export function formatSrt(segments: readonly SpokenSegment[]): string {
  return segments
    .map(({ text, start, end }, i) => {
      const shown = text.replaceAll('-->', '→');
      return `${i + 1}\n${timestamp(start, ',')} --> ${timestamp(end, ',')}\n${shown}\n\n`;
    })
    .join('');
}

export function formatVtt(segments: readonly SpokenSegment[]): string {
  const cues = segments.map(
    ({ text, start, end }) => `${timestamp(start, '.')} --> ${timestamp(end, '.')}\n${escaped(text)}\n\n`,
  );
  return `WEBVTT\n\n${cues.join('')}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function timestamp(seconds: number, point: string): string {
  const milliseconds = Math.round(seconds * 1_000);
  const part = (size: number, digits: number, of = Number.POSITIVE_INFINITY) =>
    String(Math.floor(milliseconds / size) % of).padStart(digits, '0');
  return `${part(3_600_000, 2)}:${part(60_000, 2, 60)}:${part(1_000, 2, 60)}${point}${part(1, 3, 1_000)}`;
}
