/** Chats with Gemini through Google's own unmodified client. */
import {
  ApiError,
  type Content,
  FunctionCallingConfigMode,
  type GenerateContentConfig,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
  ThinkingLevel,
} from '@google/genai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startSandbox } from '../sandbox.ts';

const MODEL = 'gemini-3.8-flash';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
let client: GoogleGenAI;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
  client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: `${sandbox.url}/google` } });
});
afterAll(() => sandbox.close());
beforeEach(() => fetch(`${sandbox.url}/bill`, { method: 'DELETE' }));

const fetchBill = async () => (await fetch(`${sandbox.url}/bill`)).json();
const tools = [
  { functionDeclarations: [{ name: 'weather', parametersJsonSchema: { type: 'object', properties: {} } }] },
];

function ask(contents: string | Content[], config: GenerateContentConfig = {}, model = MODEL) {
  return client.models.generateContent({ model, contents, config });
}

async function stream(contents: string | Content[], config: GenerateContentConfig = {}) {
  const events: GenerateContentResponse[] = [];
  for await (const event of await client.models.generateContentStream({ model: MODEL, contents, config })) {
    events.push(event);
  }
  return events;
}

const user = (text: string): Content => ({ role: 'user', parts: [{ text }] });
const parts = (...all: Part[]): Content => ({ role: 'model', parts: all });
const respond = (id: string): Content => {
  return { role: 'user', parts: [{ functionResponse: { id, name: 'weather', response: { output: 'fine' } } }] };
};
const CALL: Part = { functionCall: { id: 'a', name: 'weather', args: {} } };
const SKIPPED: Part = { ...CALL, thoughtSignature: 'skip_thought_signature_validator' };

describe('a chat', () => {
  test('has a text, thoughts and their usage, which is billed', async () => {
    const config = { thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW } };
    const { candidates, text, usageMetadata, modelVersion } = await ask('[[sandbox text="A b" reasoning=2]]', config);
    expect([text, candidates?.[0]?.finishReason, modelVersion]).toEqual(['A b', 'STOP', MODEL]);
    expect(candidates?.[0]?.content?.parts?.[0]).toEqual({ text: 'every coin', thought: true });
    const counts = { promptTokenCount: 19, candidatesTokenCount: 2, thoughtsTokenCount: 2, totalTokenCount: 23 };
    expect(usageMetadata).toMatchObject(counts);
    // 19 × 0.75 and 4 × 3.75 USD per million
    expect(await fetchBill()).toMatchObject({ total_usd: '0.00002925', lines: 1 });
  });

  test('is streamed, with the usage at its end', async () => {
    const events = await stream('[[sandbox text="A b" reasoning=2]]');
    expect(events.map(({ text }) => text ?? '').join('')).toBe('A b');
    expect(events.at(-1)).toMatchObject({
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { candidatesTokenCount: 2, thoughtsTokenCount: 2 },
    });
    expect(events[0]?.usageMetadata).not.toHaveProperty('candidatesTokenCount');
    expect(await fetchBill()).toMatchObject({ lines: 1 });
  });

  test('continues after a call with its signature', async () => {
    const asked = user('[[sandbox tool=weather]]');
    const answer = await ask([asked], { tools });
    const [call] = answer.functionCalls ?? [];
    expect(call).toMatchObject({ name: 'weather', args: {} });
    const content = answer.candidates?.[0]?.content as Content;
    expect(content.parts?.[0]?.thoughtSignature).toEqual(expect.any(String));
    const next = await stream([asked, content, respond(call?.id ?? '')], { tools });
    expect(next.at(-1)?.candidates?.[0]?.finishReason).toBe('STOP');
    const other = ask([asked, content, respond(call?.id ?? '')], { tools }, 'gemini-3.1-pro-preview');
    await expect(other).rejects.toThrow('Corrupted thought signature');
  });

  test('accepts calls of another model with the documented signature', async () => {
    expect((await ask([user('Hi'), parts(SKIPPED), respond('a')], { tools })).text).toEqual(expect.any(String));
  });

  test('needs no signatures before the current turn', async () => {
    const contents = [user('Hi'), parts(CALL), respond('a'), parts({ text: 'Fine.' }), user('And?')];
    expect((await ask(contents, { tools })).text).toEqual(expect.any(String));
  });

  test('searches, and each query that is neither empty nor repeated is billed', async () => {
    const config = { tools: [{ googleSearch: {} }] };
    const prompt = '[[sandbox tool=web_search tool_times=2 text="Jä, 3"]]';
    const queries = ['', 'what was asked, 1', 'what was asked, 2', 'what was asked, 1'];
    const segment = { endIndex: 6, text: 'Jä, 3' };
    const groundingMetadata = {
      webSearchQueries: queries,
      groundingChunks: [1, 2].map((at) => ({ web: { uri: `https://site1.example/${at}`, title: 'Page 1' } })),
      groundingSupports: [0, 1].map((at) => ({ segment, groundingChunkIndices: [at] })),
    };
    const { candidates, usageMetadata } = await ask(prompt, config);
    expect(candidates?.[0]).toMatchObject({ groundingMetadata });
    expect(usageMetadata).toMatchObject({ promptTokenCount: 36, toolUsePromptTokenCount: 400 });
    const lines = (await (await fetch(`${sandbox.url}/bill/lines`)).json()) as { model: string; usd: string }[];
    expect(lines.map(({ model, usd }) => [model, usd])).toEqual([
      [MODEL, '0.000042'], // 36 × 0.75 and 4 × 3.75 USD per million
      ['google/web_search', '0.014'],
      ['google/web_search', '0.014'],
    ]);
    const events = await stream(prompt, config);
    expect(events.at(-1)?.candidates?.[0]).toMatchObject({ groundingMetadata, finishReason: 'STOP' });
    expect(events.filter((event) => event.candidates?.[0]?.groundingMetadata)).toHaveLength(1);
  });

  test.each([
    ['without a directive', 'Hi', 1],
    ['that fail', '[[sandbox tool=web_search fault=500 at=web_search]]', 1],
    ['with a blocked prompt', '[[sandbox tool=web_search fault=policy_billed]]', 1],
  ])('has no searches %s', async (_, prompt, lines) => {
    const { candidates } = await ask(prompt, { tools: [{ googleSearch: {} }] });
    expect(candidates?.[0]?.groundingMetadata).toBeUndefined();
    expect(await fetchBill()).toMatchObject({ lines });
  });

  test('has JSON by its schema', async () => {
    const responseJsonSchema = { type: 'object', properties: { a: { enum: [1] } }, required: ['a'] };
    expect((await ask('Hi', { responseMimeType: 'application/json', responseJsonSchema })).text).toBe('{"a":1}');
  });

  test.each([
    ['policy', 'PROHIBITED_CONTENT', 0],
    ['policy_billed', 'PROHIBITED_CONTENT', 1],
  ])('with fault=%s is blocked', async (fault, blockReason, lines) => {
    const directive = `[[sandbox fault=${fault}]]`;
    expect((await ask(directive)).promptFeedback).toEqual({ blockReason });
    expect((await stream(directive)).map(({ promptFeedback }) => promptFeedback)).toEqual([{ blockReason }]);
    expect(await fetchBill()).toMatchObject({ lines: 2 * lines });
  });

  test.each<[string, string | Content[], GenerateContentConfig, string?]>([
    ['an unknown model', 'Hi', {}, 'gemini-1'],
    ['several candidates', 'Hi', { candidateCount: 2 }],
    ['a penalty', 'Hi', { presencePenalty: 1 }],
    ['a level that the model lacks', 'Hi', { thinkingConfig: { thinkingLevel: ThinkingLevel.MINIMAL } }],
    ['too many tokens', 'Hi', { maxOutputTokens: 65_537 }],
    ['six stop sequences', 'Hi', { stopSequences: ['a', 'b', 'c', 'd', 'e', 'f'] }],
    ['a schema for text', 'Hi', { responseJsonSchema: {} }],
    ['an empty text', [user('')], {}],
    ['another role', [{ ...user('Hi'), role: 'system' }], {}],
    ['a last turn of the model', [user('Hi'), parts({ text: 'Yes' })], {}],
    ['a call without a signature', [user('Hi'), parts(CALL), respond('a')], { tools }],
    ['a call without its response', [user('Hi'), parts(SKIPPED), user('And?')], { tools }],
    ['a response without its call', [user('Hi'), respond('a')], { tools }],
    ['a response of another call', [user('Hi'), parts(SKIPPED), respond('b')], { tools }],
    ['the same function twice', 'Hi', { tools: [...tools, ...tools] }],
    ['a name with a space', 'Hi', { tools: [{ functionDeclarations: [{ name: 'a b' }] }] }],
    ['a choice without functions', 'Hi', choose(FunctionCallingConfigMode.ANY)],
    ['a choice of an unknown function', 'Hi', { tools, ...choose(FunctionCallingConfigMode.ANY, ['x']) }],
    ['a search and functions', 'Hi', { tools: [...tools, { googleSearch: {} }] }],
    ['a choice for the search', 'Hi', { tools: [{ googleSearch: {} }], ...choose(FunctionCallingConfigMode.ANY) }],
    ['an unknown type of media', [{ role: 'user', parts: [{ inlineData: { mimeType: 'a/b', data: 'AA==' } }] }], {}],
    ['an invalid directive', '[[sandbox mood=good]]', {}],
  ])("is rejected in Google's format with %s", async (_, contents, config, ...[model]) => {
    const error = await ask(contents, config, model).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error.status).toBe(model ? 404 : 400);
    const status = model ? 'NOT_FOUND' : 'INVALID_ARGUMENT';
    expect(JSON.parse(error.message).error).toMatchObject({ code: error.status, status });
    expect(await fetchBill()).toMatchObject({ lines: 0 });
  });

  test.each([
    [{ mood: 1 }, 'Unknown name "mood" at \'\''],
    [{ contents: [{ parts: [{ text: 'Hi', mood: 1 }] }] }, 'Unknown name "mood" at \'contents[0].parts[0]\''],
    [{ generationConfig: { mood: 1 } }, 'Unknown name "mood" at \'generation_config\''],
    [
      { tools: [{ googleSearch: { excludeDomains: [] } }] },
      'Unknown name "excludeDomains" at \'tools[0].google_search\'',
    ],
  ])('is rejected with an unknown field: %j', async (body, message) => {
    const url = `${sandbox.url}/google/v1beta/models/${MODEL}:generateContent`;
    const contents = [user('Hi')];
    const headers = { 'x-goog-api-key': 'k' };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ contents, ...body }) });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: { message: string } }).error.message).toContain(message);
  });
});

function choose(mode: FunctionCallingConfigMode, allowedFunctionNames?: string[]): GenerateContentConfig {
  return { toolConfig: { functionCallingConfig: { mode, ...(allowedFunctionNames ? { allowedFunctionNames } : {}) } } };
}
