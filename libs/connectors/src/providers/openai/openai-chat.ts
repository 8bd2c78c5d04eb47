import { type ChatCall, type Completion, type CompletionStream, UpstreamError } from '#application';
import type { JsonHttpClient } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { wordsIn } from '../chat/partial-text.ts';
import {
  BROKEN_OFF,
  ChatChunks,
  type Delta,
  type ErrorHolder,
  getGeneratedText,
  normalizeReasoningField,
  omitReasoning,
} from './chat-chunks.ts';
import { type Dialect, OPENAI, toDialect, toResponsesDialect } from './dialect.ts';
import { ResponseEvents, wholeResponse } from './responses.ts';
import { ResponseChunks, wholeChat } from './responses-chat.ts';
import { responsesRequest, withSearch } from './responses-request.ts';
import { parseOpenAiUsage } from './usage.ts';

/** Chats in OpenAI's completions, and, where the catalogue says so, in its Responses. */
export class OpenAiChat {
  constructor(
    private readonly completions: JsonHttpClient,
    private readonly conversations: JsonHttpClient,
    private readonly dialect: Dialect,
  ) {}

  /** Searches are had from Responses alone: an endpoint that speaks nothing else, or is to search, is asked in them. */
  async chat(call: ChatCall): Promise<Completion | CompletionStream> {
    const { protocols: speaks, search, stream, withoutReasoning, identity, signal } = call;
    if (search !== undefined || !speaks.includes('chat')) {
      const request = withSearch(responsesRequest(toDialect(call.body, OPENAI)), search);
      if (stream) return this.streamed(call, request, new ResponseChunks(identity));
      return wholeChat(wholeResponse(await this.conversations.whole(request, signal)), identity);
    }
    const body = toDialect(call.body, this.dialect);
    if (stream) return this.completions.stream(body, signal, new ChatChunks(identity, withoutReasoning));
    return wholeAnswer(await this.completions.whole(body, signal), call);
  }

  async responses(call: ChatCall): Promise<Completion | CompletionStream> {
    const request = withSearch(toResponsesDialect(call.body), call.search);
    if (call.stream) return this.streamed(call, request, new ResponseEvents());
    return wholeResponse(await this.conversations.whole(request, call.signal));
  }

  private async streamed({ protocol: language, signal }: ChatCall, request: object, events: ResponseEvents) {
    const answer = await this.conversations.stream(request, signal, events, language);
    return { ...answer, countInvoicedSearches: () => events.invoiced };
  }
}

function wholeAnswer(text: string, { identity, withoutReasoning }: ChatCall): Completion {
  const answer = parseAnswer(text);
  const thoughts = withoutReasoning ? omitReasoning : normalizeReasoningField;
  return {
    kind: 'whole',
    protocol: 'chat',
    body: { ...answer, ...identity, choices: answer.choices.map((choice) => changed(choice, thoughts)) },
    usage: parseOpenAiUsage(answer.usage),
    vendorId: () => parseProviderRequestId(answer),
    getDeliveredText: () => answer.choices.map(({ message }) => (message ? getGeneratedText(message) : '')).join('\n'),
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

interface CompletionJson {
  readonly choices: readonly Choice[];
  readonly usage?: unknown;
}

function parseAnswer(text: string): CompletionJson {
  let answer: Partial<CompletionJson> | null = null;
  try {
    answer = JSON.parse(text);
  } catch {} // judged with everything else that is not an answer
  const choices: readonly unknown[] = Array.isArray(answer?.choices) ? answer.choices : [];
  const failed = [answer, ...choices].find(isFailing);
  if (failed) {
    // Without a word it was not generated, and may be asked for again.
    const delivered =
      choices.map((choice) => getGeneratedText((choice as Choice | null)?.message ?? {})).join('') || undefined;
    throw new UpstreamError('upstream_error', BROKEN_OFF, {
      status: 200,
      deliveredText: delivered,
      vendorId: parseProviderRequestId(answer),
    });
  }
  if (choices.length === 0 || !choices.every(isChoice)) {
    const more = { status: 200, deliveredText: wordsIn(text), vendorId: parseProviderRequestId(answer) };
    throw new UpstreamError('upstream_error', 'The upstream sent an answer that is not a chat completion', more);
  }
  return answer as CompletionJson;
}

/** A router reports in the choice that the provider behind it failed: https://openrouter.ai/docs/api-reference/errors */
function isFailing(part: unknown): part is ErrorHolder {
  return Boolean((part as ErrorHolder | null)?.error);
}

function isChoice(choice: unknown): choice is Choice {
  const message = (choice as Choice | null)?.message;
  return typeof message === 'object' && message !== null;
}
