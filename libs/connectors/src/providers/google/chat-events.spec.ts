import { describe, expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { classifyCommonError } from '../../http/error-rules.ts';
import { GeminiEventTranslator } from './chat-events.ts';
import { parseGeminiCompletion } from './chat-response.ts';

const identity = { id: 'gen-1', model: 'google/gemini-3.8-flash', provider: 'Google AI Studio', created: 7 };
const options = {
  model: 'gemini-3.8-flash',
  withoutReasoning: false,
  billFormat: { terms: { 'usageMetadata.trafficType': ['ON_DEMAND'] } },
};
const usageMetadata = {
  promptTokenCount: 100,
  cachedContentTokenCount: 40,
  candidatesTokenCount: 20,
  thoughtsTokenCount: 5,
  toolUsePromptTokenCount: 3,
};
const usage = { input: 60, cacheRead: 40, cacheWrite: 0, output: 20, reasoning: 5 };

const event = (parts: readonly object[], more: object = {}, rest: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  ...rest,
  responseId: 'r-1',
});
const end = (finishReason: string, more: object = {}) => event([], { finishReason, ...more }, { usageMetadata });
const functionCall = (id?: string) => ({
  functionCall: { ...(id ? { id } : {}), name: 'weather', args: { city: 'Ür' } },
});

interface Translated {
  // biome-ignore lint/suspicious/noExplicitAny: chunks of every shape
  readonly chunks: readonly any[];
  readonly events: GeminiEventTranslator;
  readonly failure: unknown;
}

/** Translates a body in chunks of `size` bytes. */
function translate(sent: readonly object[], { size = 7, withoutReasoning = false } = {}): Translated {
  const events = new GeminiEventTranslator(identity, { ...options, withoutReasoning }, classifyCommonError);
  const bytes = Buffer.from(sent.map((data) => `data: ${JSON.stringify(data)}\r\n\r\n`).join(''));
  let out = '';
  let failure: unknown;
  const pass = (piece: Uint8Array) => {
    out += Buffer.from(piece).toString();
  };
  try {
    for (let at = 0; at < bytes.length; at += size) events.accept(bytes.subarray(at, at + size), pass);
    events.end(pass);
  } catch (error) {
    failure = error;
  }
  const chunks = out.split('\n\n').filter((chunk) => chunk !== '');
  return { chunks: chunks.map((chunk) => JSON.parse(chunk.replace('data: ', '')).choices[0]), events, failure };
}

const complete = (response: object, withoutReasoning = false) =>
  parseGeminiCompletion(JSON.stringify(response), identity, { ...options, withoutReasoning });
const choiceOf = (response: object, withoutReasoning?: boolean) =>
  (complete(response, withoutReasoning).body.choices as readonly object[])[0];

describe('a stream of Gemini', () => {
  test('becomes chunks with text and reasoning, and the usage of its end', () => {
    const sent = [
      event([{ text: 'Hm', thought: true }]),
      event([{ text: 'Jä' }], {}, { usageMetadata: { promptTokenCount: 9 } }),
      end('STOP'),
    ];
    const { chunks, events, failure } = translate(sent);
    expect(failure).toBeUndefined();
    expect(chunks).toEqual([
      { index: 0, delta: { role: 'assistant', content: '', reasoning: 'Hm' }, finish_reason: null },
      { index: 0, delta: { content: 'Jä' }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'stop' },
    ]);
    expect([events.usage(), events.vendorId(), events.getDeliveredText()]).toEqual([usage, 'r-1', 'HmJä']);
    expect([events.getMaxGeneratedTokens(), events.hasForwarded()]).toEqual([5, true]);
  });

  test('has no reasoning if the client must not get it', () => {
    const { chunks, events } = translate([event([{ text: 'Hm', thought: true }])], { withoutReasoning: true });
    expect([chunks, events.getDeliveredText(), events.hasForwarded()]).toEqual([[], 'Hm', false]);
  });

  test('has calls with their signatures', () => {
    const sent = [event([{ ...functionCall('c1'), thoughtSignature: 'c2ln' }, functionCall()]), end('STOP')];
    const { chunks } = translate(sent);
    const called = { name: 'weather', arguments: '{"city":"Ür"}' };
    const detail = {
      type: 'reasoning.encrypted',
      data: 'gemini-3.8-flash:c2ln',
      id: 'c1',
      format: 'google-gemini-api-v1',
      index: 0,
    };
    expect(chunks.map(({ delta }) => delta)).toEqual([
      {
        role: 'assistant',
        content: '',
        reasoning_details: [detail],
        tool_calls: [{ index: 0, id: 'c1', type: 'function', function: called }],
      },
      { tool_calls: [{ index: 1, id: expect.stringMatching(/^call_\w{32}$/), type: 'function', function: called }] },
      {},
    ]);
    expect(chunks.at(-1)).toMatchObject({ finish_reason: 'tool_calls' });
  });

  test('without an end is interrupted, and has no usage', () => {
    const { failure, events } = translate([event([{ text: 'Yes' }], {}, { usageMetadata })]);
    expect(failure).toMatchObject({ code: 'upstream_error', hasOpenCost: true });
    expect(events.usage()).toBeUndefined();
  });

  test('may report its usage after its end', () => {
    expect(translate([event([{ text: 'Yes' }], { finishReason: 'STOP' }), { usageMetadata }]).events.usage()).toEqual(
      usage,
    );
  });

  test('reports conditions of its price', () => {
    const { events } = translate([event([], {}, { usageMetadata: { trafficType: 'ON_DEMAND_PRIORITY' } })]);
    expect(events.reportedBill()).toEqual({ terms: { trafficType: 'ON_DEMAND_PRIORITY' } });
  });

  test.each([
    [429, 'RESOURCE_EXHAUSTED', 'rate_limited'],
    [504, 'DEADLINE_EXCEEDED', 'timeout'],
    [503, 'UNAVAILABLE', 'upstream_error'],
  ])('fails with the error %i %s', (code, status, expected) => {
    const { chunks, failure } = translate([event([{ text: 'Yes' }]), { error: { code, message: 'Oops', status } }]);
    expect(chunks).toHaveLength(1);
    expect(failure).toMatchObject({ code: expected });
  });
});

describe('a response of Gemini', () => {
  test('is a completion with text, reasoning and calls', () => {
    const parts = [
      { text: 'Hm', thought: true },
      { text: 'A' },
      { text: 'B' },
      { ...functionCall('c1'), thoughtSignature: 'c2ln' },
    ];
    const response = event(parts, { finishReason: 'STOP' }, { usageMetadata });
    const message = {
      role: 'assistant',
      content: 'AB',
      reasoning: 'Hm',
      reasoning_details: [
        {
          type: 'reasoning.encrypted',
          data: 'gemini-3.8-flash:c2ln',
          id: 'c1',
          format: 'google-gemini-api-v1',
          index: 0,
        },
      ],
      tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"city":"Ür"}' } }],
      refusal: null,
    };
    const { body, usage: used, vendorId, getDeliveredText } = complete(response);
    expect(body).toEqual({
      ...identity,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }],
      system_fingerprint: null,
    });
    expect([used, vendorId(), getDeliveredText()]).toEqual([usage, 'r-1', 'HmABweather{"city":"Ür"}']);
    const { reasoning, reasoning_details, ...visible } = message;
    expect(choiceOf(response, true)).toMatchObject({ message: visible });
    expect(JSON.stringify(choiceOf(response, true))).not.toContain('reasoning');
  });

  test.each(['', '[]', '{}', 'null', '{"candidates":[]}', '{"candidates":[{"content":{"parts":[{"text":"Yes"}]}}]}'])(
    'that is incomplete fails: %s',
    (text) => {
      const deliveredText = text.includes('Yes') ? 'Yes' : '';
      expect(() => parseGeminiCompletion(text, identity, options)).toThrow(UpstreamError);
      try {
        parseGeminiCompletion(text, identity, options);
      } catch (error) {
        expect(error).toMatchObject({ code: 'upstream_error', status: 200, deliveredText });
      }
    },
  );

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['A_NEW_REASON', 'stop'],
  ])('that ends with %s has the finish reason %s, streamed or not', (finishReason, finish_reason) => {
    const stop_details = { type: 'refusal', category: finishReason.toLowerCase(), explanation: 'Because.' };
    const fields = finish_reason === 'content_filter' ? { stop_details } : {};
    const last = event([{ text: 'Yes' }], { finishReason, finishMessage: 'Because.' }, { usageMetadata });
    expect(choiceOf(last)).toMatchObject({ finish_reason, ...fields });
    const { chunks } = translate([last]);
    expect(chunks.at(-1)).toEqual({
      index: 0,
      delta: finish_reason === 'content_filter' ? { refusal: 'Because.' } : {},
      finish_reason,
      ...fields,
    });
  });

  test.each<[object, string]>([
    [end('SAFETY'), 'The request violates the content policy of the provider (SAFETY)'],
    [end('PROHIBITED_CONTENT', { finishMessage: 'Not this.' }), 'Not this.'],
    [
      { promptFeedback: { blockReason: 'BLOCKLIST' }, usageMetadata, responseId: 'r-1' },
      'The request violates the content policy of the provider (BLOCKLIST)',
    ],
  ])('that is withheld fails with what was counted, streamed or not: %j', (response, publicMessage) => {
    const failures = [translate([response]).failure];
    try {
      complete(response);
    } catch (error) {
      failures.push(error);
    }
    const expected = {
      code: 'content_policy_violation',
      publicMessage,
      usage,
      vendorId: 'r-1',
      deliveredText: undefined,
    };
    expect(failures).toMatchObject([expected, expected]);
  });

  test.each(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'])('with an invalid call fails: %s', (finishReason) => {
    const { failure } = translate([end(finishReason)]);
    expect(failure).toMatchObject({ code: 'upstream_error', unpaidUsage: usage, hasOpenCost: false });
    expect(() => complete(end(finishReason))).toThrow('The model generated an invalid tool call');
    const uncounted = translate([event([], { finishReason })]).failure;
    expect(uncounted).toMatchObject({ unpaidUsage: undefined, hasOpenCost: true });
  });

  test.each([
    [{}, undefined],
    [{ promptTokenCount: -1 }, undefined],
    [{ promptTokenCount: 7 }, { input: 7, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 }],
    [
      { promptTokenCount: 7, cachedContentTokenCount: 9 },
      { input: 0, cacheRead: 7, cacheWrite: 0, output: 0, reasoning: 0 },
    ],
  ])('has the usage %j', (reported, expected) => {
    expect(complete(event([], { finishReason: 'STOP' }, { usageMetadata: reported })).usage).toEqual(expected);
  });
});
