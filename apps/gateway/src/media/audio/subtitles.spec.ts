import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import subtitle from 'subtitle';
import webvtt from 'webvtt-parser';
import type { SpokenWord, Transcript } from '#application';
import { formatSrt, formatVtt, toSegments } from './subtitles.ts';

const NOTHING_SAID: Transcript = {
  seconds: undefined,
  language: undefined,
  milliseconds: 1_000,
  vendorId: undefined,
  segments: [],
  words: [],
  text: '',
};
const said = (more: Partial<Transcript>, language = 'en', seconds = 1) =>
  toSegments({ ...NOTHING_SAID, ...more }, language, seconds);

/** Splits a text into words that take `each` seconds. */
const words = (text: string, each = 0.4): readonly SpokenWord[] =>
  text.split(' ').map((word, i) => ({ word, start: i * each, end: (i + 1) * each }));

interface Cue {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** @throws Error if the text is not SubRip */
function readSubRip(text: string): readonly Cue[] {
  const nodes = subtitle.parseSync(text) as readonly { readonly type: string; readonly data: Cue }[];
  return nodes.map(({ data: { start, end, text } }) => ({ start: start / 1_000, end: end / 1_000, text }));
}

const ENTITIES = { '&amp;': '&', '&lt;': '<', '&gt;': '>' };

/** Parses with the WebVTT parser by the editor of the specification. */
function readWebVtt(text: string): { readonly cues: readonly Cue[]; readonly errors: readonly unknown[] } {
  const { cues, errors } = new webvtt.WebVTTParser(ENTITIES).parse(text, 'subtitles');
  const read = cues.map(({ startTime: start, endTime: end, tree }) => {
    return { start, end, text: tree.children.map(({ value = '' }) => value).join('') };
  });
  return { cues: read, errors };
}

describe('subtitles', () => {
  test('end at the end of a sentence or at a pause, with limited length and duration', () => {
    expect(said({ words: words('One, two. Three four.') }).map(({ text }) => text)).toEqual([
      'One, two.',
      'Three four.',
    ]);
    const paused = [...words('one two'), { word: 'three', start: 3, end: 3.5 }];
    expect(said({ words: paused }).map(({ text }) => text)).toEqual(['one two', 'three']);
    const long = said({ words: words(Array(200).fill('word').join(' '), 0.1) });
    expect(Math.max(...long.map(({ text }) => text.length))).toBeLessThanOrEqual(84);
    expect(
      Math.max(...said({ words: words(Array(50).fill('a').join(' ')) }).map(({ start, end }) => end - start)),
    ).toBeLessThan(7.1);
  });

  test('have no spaces between words in Japanese', () => {
    expect(said({ words: words('硬 貨 です') }, 'ja')).toMatchObject([{ text: '硬貨です' }]);
  });

  test('are the segments of the provider, if there are any', () => {
    const segments = [{ text: ' Hello  there ', start: 0, end: 1 }];
    expect(said({ segments, words: words('a b') })).toEqual([{ text: 'Hello there', start: 0, end: 1 }]);
  });

  test('consist of one segment for a text without times, and of none for an empty text', () => {
    expect(said({ text: 'Hello' }, 'en', 4)).toEqual([{ text: 'Hello', start: 0, end: 4 }]);
    expect([formatSrt(said({})), formatVtt(said({}))]).toEqual(['', 'WEBVTT\n\n']);
  });

  test('format hours, and replace or escape characters with a meaning in the format', () => {
    const segments = [{ text: 'a --> b & <c>\n\n2', start: 36_061.5, end: 36_062 }];
    expect(formatSrt(said({ segments }))).toBe('1\n10:01:01,500 --> 10:01:02,000\na → b & <c> 2\n\n');
    expect(formatVtt(said({ segments }))).toBe(
      'WEBVTT\n\n10:01:01.500 --> 10:01:02.000\na --&gt; b &amp; &lt;c&gt; 2\n\n',
    );
  });

  test('are valid for random segments, and each ends after it starts', () => {
    const time = fc.double({ min: 0, max: 500_000, noNaN: true });
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('-->', '&amp;', '<b>', '1\n\n00:00', '\r', 'NOTE x', ' '),
    );
    const segment = fc.record({ text, start: time, end: time });
    fc.assert(
      fc.property(fc.array(segment, { maxLength: 8 }), (segments) => {
        const shown = said({ segments });
        const { cues, errors } = readWebVtt(formatVtt(shown));
        expect(errors).toEqual([]);
        expect(cues.map((cue) => cue.text.replace(/\s+/g, ' '))).toEqual(shown.map((each) => each.text));
        const read = readSubRip(formatSrt(shown));
        expect(read).toHaveLength(shown.length);
        for (const [i, { start, end }] of [...read.entries(), ...cues.entries()]) {
          expect(end).toBeGreaterThan(start);
          expect(start).toBeCloseTo(shown[i]?.start ?? -1, 3);
        }
      }),
    );
  });
});
