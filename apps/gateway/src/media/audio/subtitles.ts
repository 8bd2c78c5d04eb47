/** Subtitles of a transcript in SubRip and WebVTT (https://www.w3.org/TR/webvtt1/). */
import type { SpokenSegment, SpokenWord, Transcript } from '#application';

/** The length of two lines of television subtitles. A longer word has a line of its own. */
const MAX_LINE_CHARACTERS = 84;
const MAX_LINE_SECONDS = 7;
const PAUSE_SECONDS = 0.8;
/** Minimum duration of a segment, so that it ends after it starts. */
const MIN_LINE_SECONDS = 0.001;
/** White space, line breaks and control characters. */
const INVISIBLE_CHARACTERS = /[\s\p{Cc}]+/gu;
/** Languages that are written without spaces between words. */
const LANGUAGES_WITHOUT_SPACES: ReadonlySet<string> = new Set(['ja', 'zh', 'th', 'lo', 'km', 'my']);
const SENTENCE_END_PATTERN = /[.!?…。！？]["'”’)\]]*$/;

/**
 * Returns the provider's segments if it sent any, else lines joined from its words, else the text as one segment.
 * Segments are sorted, and empty ones are dropped.
 * @param seconds the length of the recording, at which the segment of a text without times ends
 */
export function toSegments(
  { segments, words, text }: Transcript,
  language: string,
  seconds: number,
): readonly SpokenSegment[] {
  const separator = LANGUAGES_WITHOUT_SPACES.has(language.slice(0, 2)) ? '' : ' ';
  if (segments.length > 0) return toOrderedSegments(segments);
  if (words.length > 0) return toOrderedSegments(joinWords(words, separator));
  return text.trim() === '' ? [] : [{ text: text.trim(), start: 0, end: Math.max(seconds, MIN_LINE_SECONDS) }];
}

/** Joins words into lines. A line ends after a sentence, at a pause, or before it gets longer than its limits. */
function joinWords(words: readonly SpokenWord[], separator: string): readonly SpokenSegment[] {
  const lines: SpokenSegment[] = [];
  let line: SpokenSegment | undefined;
  for (const { word, start, end } of words) {
    const extended: SpokenSegment | undefined = line && { text: line.text + separator + word, start: line.start, end };
    const fits =
      line &&
      extended &&
      extended.text.length <= MAX_LINE_CHARACTERS &&
      end - line.start <= MAX_LINE_SECONDS &&
      start - line.end < PAUSE_SECONDS &&
      !SENTENCE_END_PATTERN.test(line.text);
    if (line && !fits) lines.push(line);
    line = fits ? extended : { text: word, start, end };
  }
  return line ? [...lines, line] : lines;
}

/** Sorts segments by their start and drops empty ones. Each segment ends after it starts; segments do not overlap. */
function toOrderedSegments(segments: readonly SpokenSegment[]): readonly SpokenSegment[] {
  const ordered: SpokenSegment[] = [];
  let last = 0;
  for (const segment of [...segments].sort((a, b) => a.start - b.start)) {
    const text = segment.text.toWellFormed().replace(INVISIBLE_CHARACTERS, ' ').trim();
    if (text === '') continue;
    const start = roundToMilliseconds(Math.max(segment.start, last));
    const end = roundToMilliseconds(Math.max(segment.end, start + MIN_LINE_SECONDS));
    ordered.push({ text, start, end });
    last = end;
  }
  return ordered;
}

function roundToMilliseconds(seconds: number): number {
  return Math.round(seconds * 1_000) / 1_000;
}

/** Replaces `-->` in the text, because players would take it for a line with times. */
export function formatSrt(segments: readonly SpokenSegment[]): string {
  return segments
    .map(({ text, start, end }, i) => {
      const safeText = text.replaceAll('-->', '→');
      return `${i + 1}\n${formatTimestamp(start, ',')} --> ${formatTimestamp(end, ',')}\n${safeText}\n\n`;
    })
    .join('');
}

export function formatVtt(segments: readonly SpokenSegment[]): string {
  const cues = segments.map(
    ({ text, start, end }) => `${formatTimestamp(start, '.')} --> ${formatTimestamp(end, '.')}\n${escapeVtt(text)}\n\n`,
  );
  return `WEBVTT\n\n${cues.join('')}`;
}

function escapeVtt(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function formatTimestamp(seconds: number, point: string): string {
  const milliseconds = Math.round(seconds * 1_000);
  const formatPart = (size: number, digits: number, modulus = Number.POSITIVE_INFINITY) =>
    String(Math.floor(milliseconds / size) % modulus).padStart(digits, '0');
  return `${formatPart(3_600_000, 2)}:${formatPart(60_000, 2, 60)}:${formatPart(1_000, 2, 60)}${point}${formatPart(1, 3, 1_000)}`;
}
