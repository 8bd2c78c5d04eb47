import { type ChatCall, type StreamedAnswer, UpstreamFailure, type WholeAnswer } from '#application';
import { Endpoint } from '../../http/endpoint.ts';
import { wordsIn } from '../chat/broken-answer.ts';
import type { ChatConnection } from '../chat-upstreams.ts';
import {
  ChatChunks,
  type Delta,
  errorIn,
  type Failing,
  textOf,
  underOneName,
  withoutReasoningIn,
} from './chat-chunks.ts';
import { DIALECTS, type Dialect, inDialect, inResponses } from './dialect.ts';
import { ResponseEvents, wholeResponse } from './responses.ts';
import { ResponseChunks, wholeChat } from './responses-chat.ts';
import { responsesRequest, withSearch } from './responses-request.ts';
import { usageFrom } from './usage.ts';

export interface OpenAiOptions {
  /** Address up to and including `/v1`. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly connectTimeoutMs: number;
  /** Longest silence between two pieces, and before the first one of a stream. */
  readonly idleTimeoutMs: number;
}

/** An upstream that speaks OpenAI's chat completions, and, where the catalogue says so, its Responses. */
export class OpenAiChat implements ChatConnection {
  readonly speaksResponses = true;
  private readonly endpoint: Endpoint;
  private readonly responses: Endpoint;

  constructor(
    { baseUrl, apiKey, ...timeouts }: OpenAiOptions,
    private readonly dialect: Dialect,
  ) {
    const headers = { authorization: `Bearer ${apiKey}` };
    this.endpoint = new Endpoint({ url: `${baseUrl}/chat/completions`, headers, ...timeouts });
    this.responses = new Endpoint({ url: `${baseUrl}/responses`, headers, ...timeouts });
  }

  async complete(call: ChatCall): Promise<WholeAnswer | StreamedAnswer> {
    const { language, speaks, search, stream, withoutReasoning, identity, signal } = call;
    if (language === 'responses') {
      const request = withSearch(inResponses(call.body), search);
      if (stream) return this.streamed(call, request, new ResponseEvents());
      return wholeResponse(await this.responses.whole(request, signal));
    }
    if (search !== undefined || !speaks.includes('chat')) {
      const request = withSearch(responsesRequest(inDialect(call.body, DIALECTS.openai)), search);
      if (stream) return this.streamed(call, request, new ResponseChunks(identity));
      return wholeChat(wholeResponse(await this.responses.whole(request, signal)), identity);
    }
    const body = inDialect(call.body, this.dialect);
    if (stream) return this.endpoint.stream(body, signal, new ChatChunks(identity, withoutReasoning));
    return wholeAnswer(await this.endpoint.whole(body, signal), call);
  }

  private async streamed({ language, signal }: ChatCall, request: object, events: ResponseEvents) {
    const answer = await this.responses.stream(request, signal, events, language);
    return { ...answer, invoicedSearches: () => events.invoiced };
  }

  async close(): Promise<void> {
    await Promise.all([this.endpoint.close(), this.responses.close()]);
  }
}

function wholeAnswer(text: string, { identity, withoutReasoning }: ChatCall): WholeAnswer {
  const answer = parseAnswer(text);
  const thoughts = withoutReasoning ? withoutReasoningIn : underOneName;
  return {
    kind: 'whole',
    language: 'chat',
    body: { ...answer, ...identity, choices: answer.choices.map((choice) => changed(choice, thoughts)) },
    usage: usageFrom(answer.usage),
    deliveredText: () => answer.choices.map(({ message }) => (message ? textOf(message) : '')).join('\n'),
  };
}

interface Choice {
  readonly message?: Delta;
}

/** Itself, where there is nothing to change. */
function changed(choice: Choice, change: (message: Delta) => Delta): Choice {
  const message = choice.message && change(choice.message);
  return message === choice.message ? choice : { ...choice, message };
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
  const choices: readonly unknown[] = Array.isArray(answer?.choices) ? answer.choices : [];
  const failed = [answer, ...choices].find(isFailing);
  if (failed) {
    // Without a word it was not generated, and may be asked for again.
    const delivered = choices.map((choice) => textOf((choice as Choice | null)?.message ?? {})).join('') || undefined;
    throw new UpstreamFailure('upstream_error', errorIn(failed), { status: 200, delivered });
  }
  if (choices.length === 0 || !choices.every(isChoice)) {
    const more = { status: 200, delivered: wordsIn(text) };
    throw new UpstreamFailure('upstream_error', 'The upstream sent an answer that is not a chat completion', more);
  }
  return answer as Completion;
}

/** A router tells in the choice that the provider behind it failed: https://openrouter.ai/docs/api-reference/errors */
function isFailing(part: unknown): part is Failing {
  return Boolean((part as Failing | null)?.error);
}

function isChoice(choice: unknown): choice is Choice {
  const message = (choice as Choice | null)?.message;
  return typeof message === 'object' && message !== null;
}
