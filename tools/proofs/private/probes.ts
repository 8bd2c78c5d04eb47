/** Requests to the proxy, as clients of OpenAI and of Anthropic send them, each with words that were not said before. */
import type { Planted } from './markers.ts';

const MODEL = 'private/gpt-oss-120b';
const TOOL = 'lookup';
const MAX_TOKENS = 400;
const GIVEN_UP_AFTER_MS = 180_000;

export type ProbeProtocol = 'openai' | 'anthropic';

export interface PrivateProbePhrases {
  readonly prompts: Planted;
  readonly answers: Planted;
}

export interface PrivateProbe {
  readonly face: ProbeProtocol;
  readonly stream: boolean;
  /** Options of the sandbox beside the answer's text. */
  readonly options?: string;
  /** Where it is said, the client leaves after so many milliseconds. */
  readonly leavesAfterMs?: number;
  /** Bytes of words before the question. */
  readonly length?: number;
  /** First a tool is called, then its result is sent. */
  readonly withTool?: boolean;
  /** What is sent instead of a request. */
  readonly raw?: (word: string) => string;
}

export interface PrivateProbeResult {
  /** 0 where there was no answer, or the client had left. */
  readonly status: number;
  /** Whole, by the rules of its face. */
  readonly complete: boolean;
  /** Whether the planted words of the answer are in it. */
  readonly understood: boolean;
  readonly text: string;
  /** The gateway's id, as far as the proxy tells it. */
  readonly requestId: string | undefined;
}

/** Sends one request, or two where there is a tool. @param url the proxy's address */
export async function ask(
  url: string,
  words: PrivateProbePhrases,
  asked: PrivateProbe,
): Promise<readonly PrivateProbeResult[]> {
  if (asked.raw) return [await send(url, asked, asked.raw(words.prompts.word()), '')];
  const said = `${words.answers.word()} and ${words.answers.word()}`;
  if (!asked.withTool) return [await send(url, asked, bodyOf(words, asked, said), said)];
  const given = words.answers.word();
  const first = await send(url, asked, bodyOf(words, asked, JSON.stringify({ city: given }), 'called'), given);
  if (!first.complete) return [first];
  return [first, await send(url, asked, bodyOf(words, asked, said, 'answered'), said)];
}

async function send(url: string, asked: PrivateProbe, body: string, said: string): Promise<PrivateProbeResult> {
  const { face, stream, leavesAfterMs = GIVEN_UP_AFTER_MS } = asked;
  const path = face === 'openai' ? '/v1/chat/completions' : '/v1/messages';
  const headers = { 'content-type': 'application/json' };
  try {
    const signal = AbortSignal.timeout(leavesAfterMs);
    const answer = await fetch(url + path, { method: 'POST', headers, body, signal });
    const text = await answer.text();
    const complete = answer.status === 200 && isWhole(face, stream, text);
    const heard = stream ? deltasOf(text) : text;
    const understood = complete && said.split(' and ').every((word) => heard.includes(word));
    const requestId = answer.headers.get('x-request-id') ?? undefined;
    return { status: answer.status, complete, understood, text, requestId };
  } catch {
    return { status: 0, complete: false, understood: false, text: '', requestId: undefined };
  }
}

function isWhole(face: ProbeProtocol, stream: boolean, text: string): boolean {
  if (!stream) return text.trim().endsWith('}') && !text.startsWith('{"error"');
  if (/"error":/.test(text) || /^event: error/m.test(text)) return false;
  return face === 'openai' ? text.trim().endsWith('data: [DONE]') : text.includes('event: message_stop');
}

/** What a stream says, put together: text, and arguments of tools. */
function deltasOf(text: string): string {
  return [...text.matchAll(/"(?:content|text|arguments|partial_json)":("(?:[^"\\]|\\.)*")/g)]
    .map(([, json = '""']) => JSON.parse(json) as string)
    .join('');
}

function bodyOf(words: PrivateProbePhrases, asked: PrivateProbe, said: string, tool?: 'called' | 'answered'): string {
  const { prompts } = words;
  const { face, stream, options = '', length = 0 } = asked;
  const padding = Array.from({ length: Math.ceil(length / 20) }, () => prompts.word()).join(' ');
  const directive = `[[sandbox ${tool === 'called' ? `tool=${TOOL} ` : ''}text=${JSON.stringify(said)} ${options}]]`;
  const content = `${padding} Remember ${prompts.word()}. ${directive}`;
  return JSON.stringify(
    (face === 'openai' ? openaiBody : anthropicBody)({ words, content, stream, tool, result: prompts.word() }),
  );
}

interface Parts {
  readonly words: PrivateProbePhrases;
  readonly content: string;
  readonly stream: boolean;
  readonly tool: 'called' | 'answered' | undefined;
  readonly result: string;
}

const schema = (word: string) => ({
  type: 'object',
  properties: { city: { type: 'string', description: word } },
  required: ['city'],
});

function openaiBody({ words: { prompts }, content, stream, tool, result }: Parts): object {
  const call = { id: 'call_1', type: 'function', function: { name: TOOL, arguments: `{"city":"${prompts.word()}"}` } };
  const round = [
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'call_1', content: `It says ${result}` },
  ];
  const parameters = schema(prompts.word());
  const declared = { type: 'function', function: { name: TOOL, description: prompts.word(), parameters } };
  return {
    ...{ model: MODEL, stream, max_tokens: MAX_TOKENS, user: prompts.word() },
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...(tool ? { tools: [declared] } : {}),
    messages: [
      { role: 'system', content: `You are ${prompts.word()}` },
      { role: 'user', content },
      ...(tool === 'answered' ? round : []),
    ],
  };
}

function anthropicBody({ words: { prompts }, content, stream, tool, result }: Parts): object {
  const round = [
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: TOOL, input: { city: prompts.word() } }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: `It says ${result}` }] },
  ];
  const declared = { name: TOOL, description: prompts.word(), input_schema: schema(prompts.word()) };
  return {
    ...{ model: MODEL, stream, max_tokens: MAX_TOKENS, metadata: { user_id: prompts.word() } },
    ...(tool ? { tools: [declared] } : {}),
    system: [{ type: 'text', text: `You are ${prompts.word()}` }],
    messages: [{ role: 'user', content }, ...(tool === 'answered' ? round : [])],
  };
}
