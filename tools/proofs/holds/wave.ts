/** Concurrent requests of one payer, and how they end. */
import { readText } from '../../../libs/testing/src/world/test-response.ts';
import type { Customer } from '../../cluster.ts';
import { createRandom } from './random.ts';

/** How a response arrives: in small chunks, as one chunk after the time that it takes, or as one chunk in no time. */
export type Delivery = 'streamed' | 'delayed' | 'immediate';

export type WaveProtocol = 'chat' | 'responses' | 'messages';

export interface Wave {
  /** Unique among all waves of a cluster. The provider's bill names it. */
  readonly name: string;
  readonly seed: number;
  /** The shipped model whose prices and provider the model of the wave has. */
  readonly base: string;
  /** What is measured of the model before the wave: nothing, or responses of these lengths. */
  readonly measured: 'unmeasured' | readonly number[];
  /** Output tokens of each response, and of each choice. */
  readonly lengths: readonly number[];
  readonly affordableCount: number;
  readonly delivery: Delivery;
  readonly protocol?: WaveProtocol;
  /** Whether a key pays within its limit. */
  readonly isCapped?: boolean;
  /** Whether the requests pass the proxy for private models. */
  readonly isPrivate?: boolean;
  /** Fields of every request. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Options of the directive that replace the length of the response. */
  readonly directive?: string;
}

export interface RequestOutcome {
  /**
   * `complete`, `truncated` because the money was used up, `broken` within the response, `lost` if the connection was
   * without an error, `waits` if it did not end in time, or the status of an error response.
   */
  readonly end: string;
  readonly requestId: string | undefined;
  /**
   * Time from the first byte to the end, divided by the time that the provider should take. Only of streams that are
   * complete or did not end in time.
   */
  readonly slowness?: number;
}

const TOKENS_PER_SECOND = 100;
const CHUNK_TOKENS = 16;
/** The requests of a wave arrive within this time. */
const ARRIVE_WITHIN_MS = 40;
/** Longer than a request may wait and its response take. */
const GIVEN_UP_AFTER_MS = 240_000;
/** Shorter streams say nothing about the speed. */
const MIN_TIMED_MS = 3_000;

const TOPICS = ['coin', 'ledger', 'page', 'line', 'entry', 'book'];

const PATHS: Readonly<Record<WaveProtocol, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
};

/** Reasons for the end of a response in the three protocols. */
const COMPLETE = /"(?:finish_reason|stop_reason)":\s*"(?:stop|end_turn)"|"status":\s*"completed"/;
const TRUNCATED = /"(?:finish_reason|stop_reason)":\s*"(?:length|max_tokens)"|"status":\s*"incomplete"/;
/** Sent in a stream by the proxy for private models, which has started the response while the request waited. */
const TOO_LITTLE_MONEY = /"code":\s*"insufficient_quota"/;
const FAILED = /"error":\s*\{|^event: error/m;

/** Sends the requests of a wave, spread over the URLs, and waits until all have ended. */
export function sendWave(
  wave: Wave,
  model: string,
  urls: readonly string[],
  customer: Customer,
): Promise<readonly RequestOutcome[]> {
  const random = createRandom(wave.seed);
  const first = Math.floor(random() * urls.length);
  return Promise.all(
    wave.lengths.map(async (tokens, i) => {
      const topic = TOPICS[Math.floor(random() * TOPICS.length)] as string;
      await sleep(random() * ARRIVE_WITHIN_MS);
      const url = urls[(first + i) % urls.length] as string;
      return sendRequest(url, customer, { wave, body: createBody(wave, model, tokens, topic), tokens });
    }),
  );
}

/** Returns the body of a request of the wave. */
function createBody(wave: Wave, model: string, tokens: number, topic: string): object {
  const { protocol = 'chat', delivery, fields = {} } = wave;
  const content = `Count every ${topic}. [[sandbox id=${wave.name} ${createDirective(wave, tokens)}]]`;
  const messages = [{ role: 'user', content }];
  const stream = delivery === 'streamed';
  if (protocol === 'responses') return { model, input: content, store: false, stream, ...fields };
  // The Messages protocol requires a limit. This one never ends a response.
  if (protocol === 'messages') return { model, messages, max_tokens: 32_000, stream, ...fields };
  return { model, messages, stream, ...fields };
}

function createDirective({ delivery, directive, fields, isPrivate }: Wave, tokens: number): string {
  const length = directive ?? `tokens=${tokens}`;
  if (delivery === 'immediate') return `${length} chunks=1`;
  if (delivery === 'delayed') return `${length} chunks=1 latency=${toMilliseconds(tokens)}`;
  // An enclave sends each token in an event of its own.
  if (isPrivate) return `${length} chunks=${tokens} chunk_delay=${toMilliseconds(1)}`;
  const choices = Number(fields?.n ?? 1);
  const chunkDelay = Math.round(toMilliseconds(CHUNK_TOKENS) / choices);
  return `${length} chunks=${countChunks(tokens)} chunk_delay=${chunkDelay}`;
}

interface WaveRequest {
  readonly wave: Wave;
  readonly body: object;
  readonly tokens: number;
}

async function sendRequest(
  url: string,
  { apiKey }: Customer,
  { wave: { delivery, protocol = 'chat' }, body, tokens }: WaveRequest,
): Promise<RequestOutcome> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` };
  const signal = AbortSignal.timeout(GIVEN_UP_AFTER_MS);
  const sentAt = performance.now();
  let firstAt: number | undefined;
  const response = await fetch(url + PATHS[protocol], {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal,
  }).catch(() => undefined); // `lost` or `waits`
  const { text, isComplete } = response
    ? await readText(response, () => {
        firstAt ??= performance.now();
      })
    : { text: '', isComplete: false };
  const end = isComplete || !signal.aborted ? toEnd(response, text, isComplete) : 'waits';
  const expectedMs = toMilliseconds(CHUNK_TOKENS) * (countChunks(tokens) - 1);
  const isTimed = delivery === 'streamed' && expectedMs >= MIN_TIMED_MS && ['complete', 'waits'].includes(end);
  return {
    end,
    requestId: response?.headers.get('x-request-id') ?? undefined,
    ...(isTimed ? { slowness: (performance.now() - (firstAt ?? sentAt)) / expectedMs } : {}),
  };
}

function toEnd(response: Response | undefined, text: string, isComplete: boolean): string {
  // An interrupted stream states its error before the connection is closed.
  if (!response || !(isComplete || FAILED.test(text))) return 'lost';
  if (response.status !== 200) return String(response.status);
  if (TOO_LITTLE_MONEY.test(text)) return '402';
  if (FAILED.test(text)) return 'broken';
  if (TRUNCATED.test(text)) return 'truncated';
  return COMPLETE.test(text) ? 'complete' : 'broken';
}

function toMilliseconds(tokens: number): number {
  return Math.round((tokens * 1_000) / TOKENS_PER_SECOND);
}

function countChunks(tokens: number): number {
  return Math.max(1, Math.floor(tokens / CHUNK_TOKENS));
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
