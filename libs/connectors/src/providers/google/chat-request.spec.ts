import { describe, expect, test } from '@jest/globals';
import { type ModelRules, type NativeSearch, UpstreamError } from '#application';
import { readRuleSets } from '#catalogue';
import type { JsonObject } from '#kernel';
import { generateContentFilter } from './chat-filter.ts';
import { toGenerateContentRequest } from './chat-request.ts';

const RULES = readRuleSets();
const MODEL = 'gemini-3.8-flash';
const hello = { role: 'user', content: 'Hello' };
const said = { role: 'user', parts: [{ text: 'Hello' }] };
const translated = (body: JsonObject, modelRules: ModelRules = RULES['gemini-3.6'] ?? {}) =>
  toGenerateContentRequest({ model: MODEL, messages: [hello], ...body }, modelRules);

const CITY = { type: 'object', properties: { city: { type: 'string' } } };
const weather = { type: 'function', function: { name: 'weather', description: 'Tells it', parameters: CITY } };
const call = (id: string, args = '{"city":"Ur"}') => {
  return { id, type: 'function', function: { name: 'weather', arguments: args } };
};
const called = (id: string) => ({ functionCall: { id, name: 'weather', args: { city: 'Ur' } } });
const signature = (id: string, data: string, format = 'google-gemini-api-v1') => {
  return { type: 'reasoning.encrypted', id, data, format, index: 0 };
};
const SKIPPED = { thoughtSignature: 'skip_thought_signature_validator' };
const result = (id: string, response: object) => ({ functionResponse: { id, name: 'weather', response } });

describe('a request to Gemini', () => {
  test('has the contents, and nothing else by default', async () => {
    expect(await translated({})).toEqual({ contents: [said] });
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['the output limit', { max_completion_tokens: 7 }, { maxOutputTokens: 7 }],
    ['the output limit of the legacy field', { max_tokens: 7 }, { maxOutputTokens: 7 }],
    ['sampling', { temperature: 0, top_p: 0.9, top_k: 4, seed: 1 }, { temperature: 0, topP: 0.9, topK: 4, seed: 1 }],
    ['one stop sequence', { stop: 'END' }, { stopSequences: ['END'] }],
    ['several stop sequences', { stop: ['a', 'b'] }, { stopSequences: ['a', 'b'] }],
    ['JSON', { response_format: { type: 'json_object' } }, { responseMimeType: 'application/json' }],
    [
      'a schema',
      { response_format: { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: CITY } } },
      { responseMimeType: 'application/json', responseJsonSchema: CITY },
    ],
    ['an effort', { reasoning: { effort: 'high' } }, thinking('HIGH')],
    ['the nearest effort', { reasoning: { effort: 'minimal' } }, thinking('LOW')],
    [
      'an effort for a budget',
      { max_tokens: 1_000, reasoning: { max_tokens: 500 } },
      { maxOutputTokens: 1_000, ...thinking('MEDIUM') },
    ],
    ['an effort without its thoughts', { reasoning: { effort: 'high', exclude: true } }, thinking('HIGH', false)],
    ['the lowest effort for no reasoning', { reasoning: { enabled: false } }, thinking('LOW', false)],
  ])('has %s', async (_, more, generationConfig) => {
    expect(await translated(more)).toEqual({ contents: [said], generationConfig });
  });

  test('has the lowest effort that the model supports', async () => {
    const request = await translated({ reasoning: { effort: 'none' } }, RULES['gemini-flash-lite']);
    expect(request.generationConfig).toEqual(thinking('MINIMAL', false));
  });

  test.each<[string, unknown, JsonObject]>([
    ['auto', 'auto', {}],
    ['none', 'none', { mode: 'NONE' }],
    ['required', 'required', { mode: 'ANY' }],
    [
      'a function',
      { type: 'function', function: { name: 'weather' } },
      { mode: 'ANY', allowedFunctionNames: ['weather'] },
    ],
  ])('has the functions with the choice %s', async (_, tool_choice, config) => {
    const functionDeclarations = [{ name: 'weather', description: 'Tells it', parametersJsonSchema: CITY }];
    expect(await translated({ tools: [weather], tool_choice })).toEqual({
      contents: [said],
      tools: [{ functionDeclarations }],
      ...(Object.keys(config).length === 0 ? {} : { toolConfig: { functionCallingConfig: config } }),
    });
  });

  test.each<[string, JsonObject]>([
    ['several choices', { n: 2 }],
    ['a tool of Google', { tools: [{ type: 'google_search' }] }],
    ['an unknown choice', { tools: [weather], tool_choice: { type: 'allowed_tools' } }],
    ['arguments that are not JSON', calling('{')],
    ['arguments that are no object', calling('[]')],
    ['the result of an unknown call', { messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }],
    ['an unknown part', { messages: [{ role: 'user', content: [{ type: 'x' }] }] }],
    ['a recording as a file', { messages: [{ role: 'user', content: [file('audio/mp3')] }] }],
    ...[
      'ftp://a/b.png',
      'https://',
      'https://generativelanguage.googleapis.com/v1beta/files/a',
      'https://generativelanguage.GOOGLEAPIS.com./v1beta/files/a',
      'https://www.youtube.com/watch?v=a',
      'http://YOUTU.BE./a.png',
    ].map((url): [string, JsonObject] => [`the image ${url}`, { messages: [{ role: 'user', content: [image(url)] }] }]),
  ])('is not sent with %s', async (_, more) => {
    await expect(translated(more)).rejects.toThrow(UpstreamError);
    await expect(translated(more)).rejects.toMatchObject({ code: 'invalid_request', status: undefined });
  });
});

describe('Google’s search', () => {
  const search: NativeSearch = { maxUses: 3, isRequired: false, includeDomains: [], excludeDomains: [] };
  const searching = (body: JsonObject, more: Partial<NativeSearch> = {}) =>
    toGenerateContentRequest({ model: MODEL, messages: [hello], ...body }, {}, { ...search, ...more });
  const tools = [{ googleSearch: {} }];

  test.each<[string, JsonObject, Partial<NativeSearch>, JsonObject]>([
    ['is a tool', {}, {}, {}],
    ['has no location and no limit', {}, { location: { country: 'PT' }, maxUses: 1, isOffline: true }, {}],
    ['is added without functions', { tools: [], tool_choice: 'required' }, {}, {}],
    [
      'is required by the system message',
      { messages: [{ role: 'system', content: 'Be short.' }, hello] },
      { isRequired: true },
      { systemInstruction: { parts: [{ text: 'Be short.' }, { text: 'Search the web before you respond.' }] } },
    ],
  ])('%s', async (_, body, more, expected) => {
    const request = await searching(body, more);
    expect(request).toEqual({ contents: [said], tools, ...expected });
    expect(generateContentFilter(request, '')).toBe(request);
  });

  test.each<[string, JsonObject, Partial<NativeSearch>, string]>([
    ['functions', { tools: [weather] }, {}, 'cannot be combined with functions'],
    ['included domains', {}, { includeDomains: ['a.b'] }, 'cannot include or exclude domains'],
    ['excluded domains', {}, { excludeDomains: ['a.b'] }, 'cannot include or exclude domains'],
  ])('is rejected with %s', async (_, body, more, message) => {
    await expect(searching(body, more)).rejects.toMatchObject({
      code: 'invalid_request',
      publicMessage: expect.stringContaining(message),
    });
  });

  test('is never that of the client, and has no options', () => {
    const googleSearch = { searchTypes: { imageSearch: {} } };
    const others = { googleMaps: {}, urlContext: {}, codeExecution: {}, enterpriseWebSearch: {} };
    expect(generateContentFilter({ tools: [{ googleSearch, ...others }] }, '')).toEqual({ tools });
    return expect(translated({ tools })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe('a conversation', () => {
  const contentsOf = async (messages: readonly JsonObject[]) => (await translated({ messages })).contents;

  test('has system and developer messages apart, and one content for messages of the same side', async () => {
    const messages = [
      { role: 'system', content: 'Be short.' },
      hello,
      {
        role: 'user',
        content: [
          { type: 'text', text: 'there' },
          { type: 'text', text: '' },
        ],
      },
      { role: 'assistant', content: 'Yes?', refusal: null },
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
      { role: 'assistant', content: '' },
      hello,
    ];
    expect(await translated({ messages })).toEqual({
      systemInstruction: { parts: [{ text: 'Be short.' }, { text: 'Be kind.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Hello' }, { text: 'there' }] },
        { role: 'model', parts: [{ text: 'Yes?' }] },
        said,
      ],
    });
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['an image', image('data:image/PNG;base64,AAAA'), { inlineData: { mimeType: 'image/png', data: 'AAAA' } }],
    [
      'an image by URL',
      image('https://a.b/c.JPG?d=1'),
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://a.b/c.JPG?d=1' } },
    ],
    [
      'an image by a URL without type',
      image('https://a.b/c.mp3/d?e=.mp4'),
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://a.b/c.mp3/d?e=.mp4' } },
    ],
    ['a document', file('application/pdf'), { inlineData: { mimeType: 'application/pdf', data: 'AAAA' } }],
    ['a text file', file('text/plain'), { inlineData: { mimeType: 'text/plain', data: 'AAAA' } }],
    [
      'a recording',
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { inlineData: { mimeType: 'audio/wav', data: 'AAAA' } },
    ],
    ['a video', { type: 'video_url', video_url: { url: 'https://a.b/c' } }, { fileData: { fileUri: 'https://a.b/c' } }],
  ])('has %s', async (_, part, sent) => {
    expect(await contentsOf([{ role: 'user', content: [part] }])).toEqual([{ role: 'user', parts: [sent] }]);
  });

  test('has the results of parallel calls in one content', async () => {
    const messages = [
      hello,
      { role: 'assistant', content: 'Wait.', tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'b', content: 'rain' },
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [{ type: 'text', text: 'no' }, image('data:image/png;base64,AA')],
        is_error: true,
      },
      hello,
    ];
    const inlineData = { mimeType: 'image/png', data: 'AA' };
    const failed = { id: 'a', name: 'weather', response: { error: 'no' }, parts: [{ inlineData }] };
    expect(await contentsOf(messages)).toEqual([
      said,
      { role: 'model', parts: [{ text: 'Wait.' }, { ...called('a'), ...SKIPPED }, called('b')] },
      { role: 'user', parts: [result('b', { output: 'rain' }), { functionResponse: failed }, { text: 'Hello' }] },
    ]);
  });

  test.each<[string, readonly object[], object, object]>([
    ['of the same model', [signature('a', `${MODEL}:c2ln`)], { thoughtSignature: 'c2ln' }, {}],
    ['of a later call', [signature('b', `${MODEL}:c2ln`)], SKIPPED, { thoughtSignature: 'c2ln' }],
    ['of another model', [signature('a', 'gemini-3.1-pro-preview:c2ln')], SKIPPED, {}],
    ['of a router', [signature('a', 'c2ln', 'google-gemini-v1')], SKIPPED, {}],
    ['of Anthropic', [signature('a', 'c2ln', 'anthropic-claude-v1')], SKIPPED, {}],
  ])('has the signature %s', async (_, reasoning_details, first, second) => {
    const assistant = { role: 'assistant', tool_calls: [call('a'), call('b')], reasoning_details };
    expect(await contentsOf([assistant])).toEqual([
      {
        role: 'model',
        parts: [
          { ...called('a'), ...first },
          { ...called('b'), ...second },
        ],
      },
    ]);
  });
});

function thinking(thinkingLevel: string, includeThoughts = true) {
  return { thinkingConfig: { includeThoughts, thinkingLevel } };
}

function calling(args: string) {
  return { messages: [{ role: 'assistant', tool_calls: [call('a', args)] }] };
}

function image(url: string) {
  return { type: 'image_url', image_url: { url } };
}

function file(type: string) {
  return { type: 'file', file: { filename: 'a', file_data: `data:${type};base64,AAAA` } };
}
