import { describe, expect, test } from '@jest/globals';
import type { SearchStatus } from '#application';
import { classifyCommonError } from '../../http/error-rules.ts';
import { parseGeminiCompletion } from './chat-response.ts';
import { GeminiSearchTranslator } from './search-events.ts';

const identity = { id: 'gen-1', model: 'google/gemini-3.8-flash', provider: 'Google AI Studio', created: 7 };
const options = { model: 'gemini-3.8-flash', withoutReasoning: false, billFormat: {}, hasSearched: true };
const usageMetadata = { promptTokenCount: 7, toolUsePromptTokenCount: 5_000 };

const event = (parts: readonly object[], more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  usageMetadata,
  responseId: 'r-1',
});
const grounded = (groundingMetadata: unknown) => ({ groundingMetadata });
const page = (uri: unknown, title: unknown = 'Ur') => ({ web: { uri, title } });
const support = (segment: object, ...groundingChunkIndices: unknown[]) => ({ segment, groundingChunkIndices });
const cite = (url: string, start_index: number, end_index: number, title = 'Ur') => ({
  type: 'url_citation',
  url_citation: { url, title, start_index, end_index },
});

/** Translates a stream. @returns a list of the deltas and searches in the order in which they are forwarded */
function translate(sent: readonly object[]) {
  const translator = new GeminiSearchTranslator(identity, options, classifyCommonError);
  const forwarded: unknown[] = [];
  const pass = (events: Uint8Array, search?: SearchStatus) => {
    if (search) forwarded.push(`${search.at} ${search.query} ${search.state}`);
    const chunks = Buffer.from(events).toString().split('\n\n').filter(Boolean);
    for (const chunk of chunks) {
      const [{ delta, finish_reason }] = JSON.parse(chunk.replace('data: ', '')).choices;
      forwarded.push(finish_reason ?? delta);
    }
  };
  let failure: unknown;
  try {
    translator.accept(Buffer.from(sent.map((data) => `data: ${JSON.stringify(data)}\r\n\r\n`).join('')), pass);
    translator.end(pass);
  } catch (error) {
    failure = error;
  }
  return { forwarded, translator, failure };
}

/** Returns the annotations of a response, which has to be the same as those of a stream with the same metadata. */
function readAnnotations(text: string, groundingMetadata: unknown): unknown {
  const response = event([{ text }], { finishReason: 'STOP', ...grounded(groundingMetadata) });
  const { body } = parseGeminiCompletion(JSON.stringify(response), identity, options);
  const [{ message }] = body.choices as { message: { annotations: unknown[] } }[] as [
    { message: { annotations: unknown[] } },
  ];
  const streamed = translate([response]).forwarded.flatMap((part) => (part as typeof message).annotations ?? []);
  expect(streamed).toEqual(message.annotations);
  return message.annotations;
}

const readSearches = (metadata: unknown) =>
  parseGeminiCompletion(
    JSON.stringify(event([{ text: 'A' }], { finishReason: 'STOP', ...grounded(metadata) })),
    identity,
    options,
  ).searches;

describe('a stream with searches of Google', () => {
  test('has its sources, then its searches, and then its end', () => {
    const metadata = {
      webSearchQueries: ['', 'Ur', 'Uruk', 'Ur'],
      groundingChunks: [page('https://a.b/1'), page('https://a.b/2')],
      groundingSupports: [support({ endIndex: 4, text: 'Jä.' }, 0, 1)],
    };
    const { forwarded, translator } = translate([
      event([{ text: 'J' }]),
      event([{ text: 'ä.' }], { finishReason: 'STOP', ...grounded(metadata) }),
    ]);
    expect(forwarded).toEqual([
      { role: 'assistant', content: 'J' },
      { content: 'ä.' },
      { annotations: [cite('https://a.b/1', 0, 3), cite('https://a.b/2', 0, 3)] },
      '0 Ur searching',
      '0 Ur completed',
      '1 Uruk searching',
      '1 Uruk completed',
      'stop',
    ]);
    expect([translator.invoiced, translator.usage()]).toEqual([2, expect.objectContaining({ input: 7 })]);
  });

  test('counts what several events report once, also after its end', () => {
    const chunks = { groundingChunks: [page('https://a.b/1')] };
    const first = support({ endIndex: 1 }, 0);
    const { forwarded, translator } = translate([
      event([{ text: 'A' }], grounded({ webSearchQueries: ['Ur'], ...chunks, groundingSupports: [first] })),
      event([{ text: 'B' }], grounded({ webSearchQueries: ['Ur', 'Uruk'], groundingSupports: [first] })),
      event([], {
        finishReason: 'STOP',
        ...grounded({ ...chunks, groundingSupports: [first, support({ startIndex: 1, endIndex: 2 }, 0)] }),
      }),
      event([], grounded({ webSearchQueries: ['Uruk', 'Eridu'] })),
    ]);
    expect(forwarded.map((part) => (typeof part === 'string' ? part : JSON.stringify(part)))).toEqual([
      '{"role":"assistant","content":"A"}',
      JSON.stringify({ annotations: [cite('https://a.b/1', 0, 1)] }),
      '0 Ur searching',
      '0 Ur completed',
      '{"content":"B"}',
      '1 Uruk searching',
      '1 Uruk completed',
      JSON.stringify({ annotations: [cite('https://a.b/1', 1, 2)] }),
      'stop',
      '2 Eridu searching',
      '2 Eridu completed',
    ]);
    expect(translator.invoiced).toBe(3);
  });

  test('that is interrupted has the searches that were reported', () => {
    const before = translate([event([{ text: 'A' }])]);
    expect([before.translator.invoiced, before.failure]).toEqual([0, expect.objectContaining({ hasOpenCost: true })]);
    const after = translate([event([{ text: 'A' }], grounded({ webSearchQueries: ['Ur'] })), { error: { code: 500 } }]);
    expect([after.translator.invoiced, after.failure]).toEqual([
      1,
      expect.objectContaining({ code: 'upstream_error' }),
    ]);
  });

  test('does not forward the calls and results of the search', () => {
    const parts = [
      { toolCall: { id: 'a', toolType: 'GOOGLE_SEARCH_WEB', args: { queries: ['Ur'] } }, thoughtSignature: 'c2ln' },
      { toolResponse: { id: 'a', toolType: 'GOOGLE_SEARCH_WEB', response: { text: 'no' } } },
      { text: 'A', thoughtSignature: 'c2ln' },
    ];
    expect(translate([event(parts, { finishReason: 'STOP' })]).forwarded).toEqual([
      { role: 'assistant', content: 'A' },
      'stop',
    ]);
  });
});

describe('a source', () => {
  const one = (segment: object, ...more: object[]) => ({
    groundingChunks: [page('https://a.b/1')],
    groundingSupports: [support(segment, 0), ...more],
  });

  test.each<[string, string, object, [number, number]]>([
    ['by bytes', 'Jä, 😀 3.', { startIndex: 5, endIndex: 9 }, [4, 6]],
    ['by bytes without a start', 'Jä', { endIndex: 3 }, [0, 2]],
    ['by its text if its part is another', 'One. Two.', { startIndex: 0, endIndex: 4, text: 'Two.' }, [5, 9]],
    ['by its text without valid bytes', 'One. Two.', { startIndex: 7, endIndex: 99, text: 'Two.' }, [5, 9]],
    ['by bytes if its text is elsewhere', 'One. Two.', { endIndex: 4, text: 'Three.' }, [0, 4]],
  ])('is located %s', (_, text, segment, [start, end]) => {
    expect(readAnnotations(text, one(segment))).toEqual([cite('https://a.b/1', start, end)]);
  });

  test.each<[string, object]>([
    ['beyond the text', { endIndex: 9 }],
    ['before its start', { startIndex: 2, endIndex: 1 }],
    ['with a negative start', { startIndex: -1, endIndex: 1 }],
    ['with indexes of another type', { startIndex: '0', endIndex: '1' }],
    ['without an end', {}],
  ])('is left out with a segment %s', (_, segment) => {
    expect(readAnnotations('Yes.', one(segment))).toEqual([]);
  });

  test.each(['javascript:alert(1)', 'data:text/html,a', 'ftp://a.b/', '/a', '', 7, `https://a.b/${'c'.repeat(2_048)}`])(
    'is left out with the address %j, and the indexes of the others stay',
    (uri) => {
      const metadata = {
        groundingChunks: [page(uri), {}, null, page('https://a.b/2', '')],
        groundingSupports: [support({ endIndex: 1 }, 0, 1, 2, 3, 4, -1, 0.5, 'length', '__proto__')],
      };
      expect(readAnnotations('A', metadata)).toEqual([cite('https://a.b/2', 0, 1, 'https://a.b/2')]);
    },
  );

  test('is one of 500 at most', () => {
    const groundingChunks = Array.from({ length: 600 }, (_, at) => page(`https://a.b/${at}`, 't'.repeat(600)));
    const indexes = groundingChunks.map((_, at) => at);
    const supports = Array.from({ length: 3 }, (_, at) => support({ endIndex: at + 1 }, ...indexes));
    const annotations = readAnnotations('Yes.', { groundingChunks, groundingSupports: supports }) as readonly object[];
    expect(annotations).toHaveLength(500);
    expect(annotations[499]).toEqual(cite('https://a.b/499', 0, 1, 't'.repeat(500)));
  });
});

test.each<[string, unknown, number]>([
  ['no metadata', undefined, 0],
  ['metadata of another type', 'Ur', 0],
  ['queries of another type', { webSearchQueries: { length: 3 } }, 0],
  ['elements of other types', { webSearchQueries: [1, null, {}, 'Ur', ''] }, 1],
  ['queries that differ only in case', { webSearchQueries: ['Ur', 'ur'] }, 2],
  ['too many queries', { webSearchQueries: Array.from({ length: 5_000 }, (_, at) => `${at}`) }, 1_000],
])('a response with %s has the invoiced searches of Google', (_, metadata, invoiced) => {
  const searches = readSearches(metadata);
  expect(searches?.invoiced).toBe(invoiced);
  expect(searches?.statuses).toHaveLength(invoiced);
});

test('a response without Google’s search has neither searches nor sources, whatever it contains', () => {
  const response = event([{ text: 'A' }], { finishReason: 'STOP', ...grounded({ webSearchQueries: ['Ur'] }) });
  const { hasSearched, ...rest } = options;
  const { searches, body } = parseGeminiCompletion(JSON.stringify(response), identity, rest);
  expect([searches, JSON.stringify(body)]).toEqual([undefined, expect.not.stringContaining('annotations')]);
});
