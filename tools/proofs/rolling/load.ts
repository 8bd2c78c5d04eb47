/** Requests at a steady rate, of which each response is checked. */
import type { Customer } from '../../cluster.ts';

const CATCH_UP_INTERVAL_MS = 10;
/** Longer than a stream and the start of a gateway. */
const GIVEN_UP_AFTER_MS = 240_000;
/** Maximum length of the end of a failed response in a report, in characters. */
const MAX_FAILURE_LENGTH = 300;
/** A long stream has this many chunks at equal intervals. */
const CHUNKS = 21;
const SHORT_DIRECTIVE = 'latency=20 chunks=6 chunk_delay=10';
const EMBEDDING_LENGTH = 1_536;

/** One of five requests is a long stream. */
const KINDS = ['long stream', 'chat', 'stream', 'embedding', 'translated stream'] as const;
type Kind = (typeof KINDS)[number];

const MODELS: Readonly<Record<Kind, string>> = {
  'long stream': 'openai/gpt-5-mini',
  chat: 'openai/gpt-5-mini',
  stream: 'openai/gpt-4.1',
  embedding: 'openai/text-embedding-3-small',
  'translated stream': 'anthropic/claude-haiku-4.5',
};

export interface LoadParams {
  readonly url: string;
  readonly customers: readonly Customer[];
  readonly requestsPerSecond: number;
  /** How long a long stream takes from its first chunk to its last one. */
  readonly streamMs: number;
}

interface Failure {
  /** Seconds since the start of the load. */
  readonly sentAfterS: number;
  readonly reason: string;
}

export interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Sends requests at a constant rate, however long the responses take. */
export class SteadyLoad {
  sentCount = 0;
  /** The ids of the requests with a complete and correct response. */
  readonly completedIds: string[] = [];
  readonly failures: Failure[] = [];
  private readonly latenciesMs = { full: [] as number[], firstByte: [] as number[] };
  private readonly running = new Set<Promise<void>>();
  private readonly startedAt = performance.now();
  private stoppedAt: number | undefined;
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly params: LoadParams) {
    this.timer = setInterval(() => this.sendDueRequests(), CATCH_UP_INTERVAL_MS);
  }

  /** Stops sending requests, and waits for all responses. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.stoppedAt = performance.now();
    await Promise.all(this.running);
  }

  /** How long requests have been sent. */
  get seconds(): number {
    return ((this.stoppedAt ?? performance.now()) - this.startedAt) / 1_000;
  }

  /** Time to the end of all responses but those of long streams. */
  get fullLatency(): Latency {
    return summarize(this.latenciesMs.full);
  }

  /** Time to the first byte of the body of long streams. */
  get firstByteLatency(): Latency {
    return summarize(this.latenciesMs.firstByte);
  }

  private sendDueRequests(): void {
    const dueCount = Math.floor(this.seconds * this.params.requestsPerSecond);
    while (this.sentCount < dueCount) {
      const pendingRequest = this.sendRequest(this.sentCount++).finally(() => this.running.delete(pendingRequest));
      this.running.add(pendingRequest);
    }
  }

  private async sendRequest(index: number): Promise<void> {
    const { url, customers, streamMs } = this.params;
    const kind = KINDS[index % KINDS.length] as Kind;
    // The customer changes after each round of kinds, so that each one sends all kinds.
    const { apiKey } = customers[Math.floor(index / KINDS.length) % customers.length] as Customer;
    const request = createRequest(kind, index, streamMs);
    const sentAt = performance.now();
    const sentAfterS = this.seconds;
    try {
      const response = await fetch(url + request.path, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(request.body),
        signal: AbortSignal.timeout(GIVEN_UP_AFTER_MS),
      });
      const chunks: Uint8Array[] = [];
      for await (const chunk of response.body ?? []) {
        if (kind === 'long stream' && chunks.length === 0) this.latenciesMs.firstByte.push(performance.now() - sentAt);
        chunks.push(chunk);
      }
      if (kind !== 'long stream') this.latenciesMs.full.push(performance.now() - sentAt);
      const text = Buffer.concat(chunks).toString();
      const id = response.headers.get('x-request-id');
      if (response.status === 200 && id !== null && request.isCorrect(text)) this.completedIds.push(id);
      else this.recordFailure(sentAfterS, `${kind}: ${response.status} ${text.slice(-MAX_FAILURE_LENGTH)}`);
    } catch (error) {
      const { cause = error } = error as Error;
      this.recordFailure(sentAfterS, `${kind}: ${cause}`);
    }
  }

  private recordFailure(sentAfterS: number, reason: string): void {
    this.failures.push({ sentAfterS, reason });
  }
}

/** Returns a request with a text that no other request has, and the check of its response. */
function createRequest(kind: Kind, index: number, streamMs: number) {
  const model = MODELS[kind];
  if (kind === 'embedding') {
    const body = { model, input: `line ${index}` };
    return { path: '/v1/embeddings', body, isCorrect: (text: string) => isCorrectEmbedding(text) };
  }
  const expected = Array.from({ length: CHUNKS }, (_, i) => `${index}_${i}`).join(' ');
  const timing =
    kind === 'long stream' ? `chunks=${CHUNKS} chunk_delay=${Math.round(streamMs / (CHUNKS - 1))}` : SHORT_DIRECTIVE;
  const content = `[[sandbox ${timing} text=${JSON.stringify(expected)}]]`;
  const stream = kind !== 'chat';
  const body = { model, messages: [{ role: 'user', content }], max_tokens: 128, stream };
  const isCorrect = (text: string) => (stream ? readStream(text) : readChat(text)) === expected;
  return { path: '/v1/chat/completions', body, isCorrect };
}

interface ChatChoice {
  readonly message?: { readonly content: string };
  readonly delta?: { readonly content?: string | null };
  readonly finish_reason: string | null;
}

function readChat(text: string): string | undefined {
  const { choices } = JSON.parse(text) as { readonly choices: readonly ChatChoice[] };
  const [{ message, finish_reason } = {}] = choices as readonly Partial<ChatChoice>[];
  return finish_reason === 'stop' ? message?.content : undefined;
}

/** Returns the text of a stream of chunks; undefined if the stream is incomplete. */
function readStream(text: string): string | undefined {
  if (!text.endsWith('data: [DONE]\n\n')) return undefined;
  const payloads = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, payload = '']) => JSON.parse(payload));
  const choices = payloads.flatMap((payload) => (payload.choices ?? []) as readonly ChatChoice[]);
  if (!choices.some(({ finish_reason }) => finish_reason === 'stop')) return undefined;
  return choices.map(({ delta }) => delta?.content ?? '').join('');
}

function isCorrectEmbedding(text: string): boolean {
  const { data } = JSON.parse(text) as { readonly data: readonly { readonly embedding: readonly number[] }[] };
  return data.length === 1 && data[0]?.embedding.length === EMBEDDING_LENGTH;
}

function summarize(latenciesMs: number[]): Latency {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const getPercentile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
  return { p50Ms: getPercentile(0.5), p99Ms: getPercentile(0.99) };
}
