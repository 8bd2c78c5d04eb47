import { type ChatCall, type StreamedAnswer, UpstreamFailure, type WholeAnswer } from '#application';
import { Endpoint } from '../chat/endpoint.ts';
import type { ChatConnection } from '../chat-upstreams.ts';
import { ChatChunks, textOf, withoutReasoningIn } from './chat-chunks.ts';
import { type Dialect, inDialect } from './dialect.ts';
import { usageFrom } from './usage.ts';

export interface OpenAiOptions {
  /** Address up to and including `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces, and before the first one of a stream. */
  readonly idleTimeoutMs: number;
}

/** An upstream that speaks OpenAI's chat completions. */
export class OpenAiChat implements ChatConnection {
  private readonly endpoint: Endpoint;

  constructor(
    { baseUrl, apiKey, ...timeouts }: OpenAiOptions,
    private readonly dialect: Dialect,
  ) {
    const headers = { authorization: `Bearer ${apiKey}` };
    this.endpoint = new Endpoint({ url: `${baseUrl}/chat/completions`, headers, ...timeouts });
  }

  async complete(call: ChatCall): Promise<WholeAnswer | StreamedAnswer> {
    const { stream, withoutReasoning, identity, signal } = call;
    const body = inDialect(call.body, this.dialect);
    if (stream) return this.endpoint.stream(body, signal, new ChatChunks(identity, withoutReasoning));
    return wholeAnswer(await this.endpoint.whole(body, signal), call);
  }

  close(): Promise<void> {
    return this.endpoint.close();
  }
}

function wholeAnswer(text: string, { identity, withoutReasoning }: ChatCall): WholeAnswer {
  const answer = parseAnswer(text);
  const choices = withoutReasoning ? { choices: answer.choices.map(withoutThoughts) } : {};
  return {
    kind: 'whole',
    body: { ...answer, ...identity, ...choices },
    usage: usageFrom(answer.usage),
    deliveredText: () => answer.choices.map(({ message }) => (message ? textOf(message) : '')).join('\n'),
  };
}

interface Choice {
  readonly message?: Parameters<typeof textOf>[0];
}

function withoutThoughts(choice: Choice): Choice {
  return choice.message ? { ...choice, message: withoutReasoningIn(choice.message) } : choice;
}

interface Completion {
  readonly choices: readonly Choice[];
  readonly usage?: unknown;
}

function parseAnswer(text: string): Completion {
  let answer: Partial<Completion> | null = null;
  try {
    answer = JSON.parse(text);
  } catch {} // judged with everything else that is not an answer
  if (!Array.isArray(answer?.choices)) {
    const more = { status: 200, delivered: text };
    throw new UpstreamFailure('upstream_error', 'The upstream sent an answer that is not a chat completion', more);
  }
  return answer as Completion;
}
