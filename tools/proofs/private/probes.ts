/** Sends requests to the proxy as clients of OpenAI and of Anthropic do, each with unique phrases. */
import { readText } from '../../../libs/testing/src/world/test-response.ts';
import type { SeededPhrases } from './markers.ts';

const MODEL = 'private/gpt-oss-120b';
const TOOL = 'lookup';
const MAX_TOKENS = 400;
const GIVEN_UP_AFTER_MS = 180_000;
/** The error of a response, or the one that ends an incomplete stream. */
const ERROR = /"error":|^event: error/m;

export type ProbeProtocol = 'openai' | 'anthropic';

export interface PrivateProbePhrases {
  readonly prompts: SeededPhrases;
  readonly completions: SeededPhrases;
}

export interface PrivateProbe {
  readonly protocol: ProbeProtocol;
  readonly stream: boolean;
  /** Options of the sandbox directive, in addition to the text of the completion. */
  readonly options?: string;
  /** If set, the client disconnects after this time. */
  readonly leavesAfterMs?: number;
  /** The approximate length of the phrases before the actual prompt, in bytes. */
  readonly length?: number;
  /** Whether the model first calls a tool. A second request then contains the result of the tool. */
  readonly withTool?: boolean;
  /** Returns a body that is sent instead of a valid request. */
  readonly raw?: (phrase: string) => string;
}

export interface PrivateProbeResult {
  /** 0 if there was no response, its body broke off without an error, or the client had disconnected. */
  readonly status: number;
  /** Whether the response is complete by the rules of its protocol. */
  readonly complete: boolean;
  /** Whether the response is complete and contains the expected phrases. */
  readonly hasExpectedText: boolean;
  readonly text: string;
  /** The request id of the gateway, if the proxy returns it. */
  readonly requestId: string | undefined;
}

const NO_RESPONSE: PrivateProbeResult = {
  status: 0,
  complete: false,
  hasExpectedText: false,
  text: '',
  requestId: undefined,
};

/** Sends one request. With a tool, sends a second one if the first response is complete. @param url the proxy's URL */
export async function runProbe(
  url: string,
  phrases: PrivateProbePhrases,
  probe: PrivateProbe,
): Promise<readonly PrivateProbeResult[]> {
  if (probe.raw) return [await send(url, probe, probe.raw(phrases.prompts.createPhrase()), '')];
  const expectedText = `${phrases.completions.createPhrase()} and ${phrases.completions.createPhrase()}`;
  if (!probe.withTool) return [await send(url, probe, createBody(phrases, probe, expectedText), expectedText)];
  const city = phrases.completions.createPhrase();
  const first = await send(url, probe, createBody(phrases, probe, JSON.stringify({ city }), 'called'), city);
  if (!first.complete) return [first];
  return [first, await send(url, probe, createBody(phrases, probe, expectedText, 'returned'), expectedText)];
}

async function send(url: string, probe: PrivateProbe, body: string, expectedText: string): Promise<PrivateProbeResult> {
  const { protocol, stream, leavesAfterMs = GIVEN_UP_AFTER_MS } = probe;
  const path = protocol === 'openai' ? '/v1/chat/completions' : '/v1/messages';
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(leavesAfterMs);
  const request = { method: 'POST', headers, body, signal };
  const response = await fetch(url + path, request).catch(() => undefined); // disconnected by the proxy or by this client
  if (!response) return NO_RESPONSE;
  const { text, isComplete: hasEnded } = await readText(response);
  const complete = hasEnded && response.status === 200 && isComplete(protocol, stream, text);
  const generatedText = stream ? joinDeltas(text) : text;
  return {
    // A stream of OpenAI's protocol that is interrupted states its error before its connection is closed.
    status: hasEnded || ERROR.test(text) ? response.status : 0,
    complete,
    hasExpectedText: complete && expectedText.split(' and ').every((phrase) => generatedText.includes(phrase)),
    text,
    requestId: response.headers.get('x-request-id') ?? undefined,
  };
}

function isComplete(protocol: ProbeProtocol, stream: boolean, text: string): boolean {
  if (!stream) return text.trim().endsWith('}') && !text.startsWith('{"error"');
  if (ERROR.test(text)) return false;
  return protocol === 'openai' ? text.trim().endsWith('data: [DONE]') : text.includes('event: message_stop');
}

/** Joins the text and the tool arguments of a stream. */
function joinDeltas(text: string): string {
  return [...text.matchAll(/"(?:content|text|arguments|partial_json)":("(?:[^"\\]|\\.)*")/g)]
    .map(([, json = '""']) => JSON.parse(json) as string)
    .join('');
}

function createBody(
  phrases: PrivateProbePhrases,
  probe: PrivateProbe,
  expectedText: string,
  tool?: 'called' | 'returned',
): string {
  const { prompts } = phrases;
  const { protocol, stream, options = '', length = 0 } = probe;
  const padding = Array.from({ length: Math.ceil(length / 20) }, () => prompts.createPhrase()).join(' ');
  const directive = `[[sandbox ${tool === 'called' ? `tool=${TOOL} ` : ''}text=${JSON.stringify(expectedText)} ${options}]]`;
  const content = `${padding} Remember ${prompts.createPhrase()}. ${directive}`;
  return JSON.stringify(
    (protocol === 'openai' ? createOpenAiBody : createAnthropicBody)({
      phrases,
      content,
      stream,
      tool,
      result: prompts.createPhrase(),
    }),
  );
}

interface Parts {
  readonly phrases: PrivateProbePhrases;
  readonly content: string;
  readonly stream: boolean;
  readonly tool: 'called' | 'returned' | undefined;
  readonly result: string;
}

const schema = (phrase: string) => ({
  type: 'object',
  properties: { city: { type: 'string', description: phrase } },
  required: ['city'],
});

function createOpenAiBody({ phrases: { prompts }, content, stream, tool, result }: Parts): object {
  const call = {
    id: 'call_1',
    type: 'function',
    function: { name: TOOL, arguments: `{"city":"${prompts.createPhrase()}"}` },
  };
  const round = [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: `It says ${result}` },
  ];
  const parameters = schema(prompts.createPhrase());
  const declared = { type: 'function', function: { name: TOOL, description: prompts.createPhrase(), parameters } };
  return {
    model: MODEL,
    stream,
    max_tokens: MAX_TOKENS,
    user: prompts.createPhrase(),
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...(tool ? { tools: [declared] } : {}),
    messages: [
      { role: 'system', content: `You are ${prompts.createPhrase()}` },
      { role: 'user', content },
      ...(tool === 'returned' ? round : []),
    ],
  };
}

function createAnthropicBody({ phrases: { prompts }, content, stream, tool, result }: Parts): object {
  const round = [
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: TOOL, input: { city: prompts.createPhrase() } }],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: `It says ${result}` }] },
  ];
  const declared = { name: TOOL, description: prompts.createPhrase(), input_schema: schema(prompts.createPhrase()) };
  return {
    model: MODEL,
    stream,
    max_tokens: MAX_TOKENS,
    metadata: { user_id: prompts.createPhrase() },
    ...(tool ? { tools: [declared] } : {}),
    system: [{ type: 'text', text: `You are ${prompts.createPhrase()}` }],
    messages: [{ role: 'user', content }, ...(tool === 'returned' ? round : [])],
  };
}
