import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatSseComment, formatSseEvent, MAX_EVENT_CHARACTERS, parseSseEvents, SSE_DONE, SseParser } from './sse.ts';

describe('the data of an SSE event', () => {
  test.each<[string, string, readonly string[]]>([
    ['one line', 'data: {"a":1}', ['{"a":1}']],
    ['without a space', 'data:{"a":1}', ['{"a":1}']],
    ['with more space', 'data:  {"a":1} ', ['{"a":1}']],
    ['after its type', 'event: message\ndata: {"a":1}', ['{"a":1}']],
    ['before its id', 'data: {"a":1}\nid: 7', ['{"a":1}']],
    ['in lines that end with CR LF', 'event: message\r\ndata: {"a":1}\r', ['{"a":1}']],
    ['in several lines', 'data: {"a":\ndata: 1}', ['{"a":\n1}']],
    ['after a byte order mark', '\u00ef\u00bb\u00bfdata: {"a":1}', ['{"a":1}']],
    ['the end marker', 'data: [DONE]', [SSE_DONE]],
    ['of a comment', ': data: keep-alive', []],
    ['of another field', 'metadata: x', []],
    ['of nothing', '', []],
  ])('is parsed: %s', (_, event, data) => {
    const parser = new SseParser();
    expect([...parser.read(event), ...parser.end()]).toEqual(data);
  });

  test('is parsed as it was formatted, with or without a type', () => {
    const json = fc.json().filter((text) => !/[\r\n]/.test(text) && text.trim() === text);
    fc.assert(
      fc.property(json, fc.option(fc.constantFrom('message', 'response.completed')), (data, type) => {
        const written = formatSseEvent(data, type ?? undefined);
        expect(new SseParser().read(written)).toEqual([data]);
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
  const eventData = ['{"text":"one"}', '{"text":"\\n\\n is no end"}', `"${'long '.repeat(40)}"`, SSE_DONE];

  test.each(['\n\n', '\r\n\r\n'])('has the same events wherever it is split, if events end with %j', (end) => {
    const body = events.map((event) => event.replaceAll('\n', end.slice(end.length / 2)) + end).join('');
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: body.length }), { maxLength: 12 }), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), body.length];
        const parser = new SseParser();
        expect(at.slice(1).flatMap((to, i) => parser.read(body.slice(at[i], to)))).toEqual(eventData);
        expect(parser.end()).toEqual([]);
      }),
    );
  });

  test('is parsed in linear time if it has an event of 16 MB in small chunks, and lines of any length that are no fields', () => {
    const PIECES = 160_000; // searching all of them for each chunk would take longer than a test may
    const parser = new SseParser();
    parser.read('data: ');
    for (let i = 0; i < PIECES; i++) expect(parser.read('x'.repeat(100))).toEqual([]);
    expect(parser.read('\n\n')).toEqual(['x'.repeat(100 * PIECES)]);
    for (let i = 0; i < PIECES; i++) parser.read('x'.repeat(200));
    expect([parser.isTooLong, parser.read('\ndata: end\n\n')]).toEqual([false, ['end']]);
  });

  test.each([
    ['one line', 'x'.repeat(1_000)],
    ['many lines', `${'x'.repeat(992)}\ndata: `],
  ])('is too long once an incomplete event of %s is, but the events before it are parsed', (_, piece) => {
    const parser = new SseParser();
    expect(parser.read('data: 1\n\ndata: ')).toEqual(['1']);
    for (let size = 0; size + piece.length <= MAX_EVENT_CHARACTERS; size += piece.length) parser.read(piece);
    expect(parser.isTooLong).toBe(false);
    for (let i = 0; i < 1_000 && !parser.isTooLong; i++) parser.read(piece);
    expect(parser.isTooLong).toBe(true);
  });

  test('ends with its last event if the blank line after that is missing', () => {
    const parser = new SseParser();
    expect(parser.read('data: 1\n\ndata: 2\n')).toEqual(['1']);
    expect(parser.end()).toEqual(['2']);
  });
});
