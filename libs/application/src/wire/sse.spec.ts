import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatSseComment, formatSseEvent, parseSseData, parseSseEvents, SSE_DONE, SseParser } from './sse.ts';

describe('the data of an SSE event', () => {
  test.each<[string, string, string | undefined]>([
    ['one line', 'data: {"a":1}', '{"a":1}'],
    ['without a space', 'data:{"a":1}', '{"a":1}'],
    ['after its type', 'event: message\ndata: {"a":1}', '{"a":1}'],
    ['before its id', 'data: {"a":1}\nid: 7', '{"a":1}'],
    ['in lines that end with CR LF', 'event: message\r\ndata: {"a":1}\r', '{"a":1}'],
    ['in several lines', 'data: {"a":\ndata: 1}', '{"a":\n1}'],
    ['the end marker', 'data: [DONE]', SSE_DONE],
    ['of a comment', ': data: keep-alive', undefined],
    ['of another field', 'metadata: x', undefined],
    ['of nothing', '', undefined],
  ])('is parsed: %s', (_, event, data) => {
    expect(parseSseData(event)).toBe(data);
  });

  test('is parsed as it was formatted, with or without a type', () => {
    const json = fc.json().filter((text) => !/[\r\n]/.test(text) && text.trim() === text);
    fc.assert(
      fc.property(json, fc.option(fc.constantFrom('message', 'response.completed')), (data, type) => {
        const written = formatSseEvent(data, type ?? undefined);
        expect(new SseParser().read(written).map(parseSseData)).toEqual([data]);
        expect(parseSseEvents(Buffer.from(formatSseComment('alive') + written + written))).toEqual([data, data]);
      }),
    );
  });
});

describe('a body', () => {
  const events = [
    'event: a\ndata: {"text":"one"}',
    'data: {"text":"\\n\\n is no end"}',
    ': alive',
    `data: "${'long '.repeat(40)}"`,
    'data: [DONE]',
  ];

  test.each(['\n\n', '\r\n\r\n'])('has the same events wherever it is split, if events end with %j', (end) => {
    const body = events.map((event) => event.replaceAll('\n', end.slice(end.length / 2)) + end).join('');
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: body.length }), { maxLength: 12 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), body.length];
        const reader = new SseParser();
        const read = at.slice(1).flatMap((to, i) => reader.read(body.slice(at[i], to)));
        expect(read.map(parseSseData)).toEqual(events.map(parseSseData));
        expect(reader.rest).toBe('');
      }),
    );
  });

  test.each([
    ['of one line', 'x'.repeat(100)],
    ['of many lines', `data: ${'x'.repeat(92)}\n\r`],
  ])('is parsed in linear time if it has an event of 32 MB %s', (_, piece) => {
    const PIECES = 320_000; // searching all of them for each chunk would take longer than a test may
    const reader = new SseParser();
    for (let i = 0; i < PIECES; i++) reader.read(piece);
    expect(reader.pendingCharacters).toBe(PIECES * piece.length);
    expect(reader.read('\ndata: end\n\n').at(-1)).toMatch(/data: end$/);
  });

  test('leaves the start of its last event if it is interrupted', () => {
    const reader = new SseParser();
    expect(reader.read('data: 1\n\ndata: 2\n')).toEqual(['data: 1']);
    expect(reader.rest).toBe('data: 2\n');
  });

  test('is parsed as one event even if that event is long and arrives in many chunks', () => {
    const reader = new SseParser();
    const piece = 'x'.repeat(1_000);
    for (let i = 0; i < 5_000; i++) expect(reader.read(piece)).toEqual([]);
    expect(reader.read('\n\n')).toEqual([piece.repeat(5_000)]);
  });
});
