import { type ChatCall, type Completion, type CompletionStream, UpstreamError } from '#application';
import { type ClassifyError, toErrorReport, toUsageDetails } from '../../http/error-rules.ts';
import type { JsonHttpClient, StreamFormat } from '../../http/json-http-client.ts';
import { parseProviderRequestId } from '../../http/parse-reported.ts';
import { type BillFormat, parseReportedBill } from '../../http/reported-bill.ts';
import { extractGeneratedText } from '../chat/partial-text.ts';
import { withReasoningLimit } from '../chat/reasoning-limit.ts';
import {
  ChatChunkTranslator,
  type Delta,
  type ErrorHolder,
  type GroqFieldsHolder,
  getGeneratedText,
  MESSAGE_INTERRUPTED,
  normalizeReasoningField,
  omitReasoning,
} from './chat-chunks.ts';
import { type Dialect, getReasoningLimit, OPENAI_DIALECT, toDialect, toResponsesDialect } from './dialect.ts';
import { parseResponsesCompletion, ResponsesEventTranslator } from './responses.ts';
import { ResponsesToChatTranslator, toChatCompletion } from './responses-chat.ts';
import { toResponsesRequest, withSearch } from './responses-request.ts';
import { ChatRequestWithSearch, parseInvoicedSearches } from './router-search.ts';
import { parseOpenAiUsage } from './usage.ts';

/** Chats and Responses requests, through OpenAI's chat completions or its Responses API. */
export class OpenAiChat {
  constructor(
    private readonly completionsClient: JsonHttpClient,
    private readonly responsesClient: JsonHttpClient,
    private readonly dialect: Dialect,
    private readonly billFormat: BillFormat,
  ) {}

  /** Uses the Responses API if the endpoint supports only that one, and for OpenAI's web search, which needs that API. */
  chat(call: ChatCall): Promise<Completion | CompletionStream> {
    const needsResponses = call.search !== undefined && this.dialect.search === undefined;
    const usesResponses = needsResponses || !call.protocols.includes('chat');
    const response = usesResponses ? this.requestChatAsResponse(call) : this.requestChat(call);
    return withReasoningLimit(
      call,
      response,
      getReasoningLimit(call.body, usesResponses ? OPENAI_DIALECT : this.dialect, call.modelRules),
    );
  }

  responses(call: ChatCall): Promise<Completion | CompletionStream> {
    return withReasoningLimit(
      call,
      this.requestResponse(call),
      getReasoningLimit(call.body, OPENAI_DIALECT, call.modelRules),
    );
  }

  private async requestChat(call: ChatCall): Promise<Completion | CompletionStream> {
    const { search, stream, withoutReasoning, identity, signal } = call;
    const body = toDialect(call.body, this.dialect, call.modelRules);
    const request = search === undefined ? body : new ChatRequestWithSearch(body, search);
    const { classifyError } = this.completionsClient;
    const parseCompletion = (text: string) => parseChatCompletion(text, call, classifyError, this.billFormat);
    if (!stream) return parseCompletion(await this.completionsClient.post(request, signal));
    const translator = new ChatChunkTranslator(identity, withoutReasoning, classifyError, this.billFormat);
    const response = await this.completionsClient.stream(request, signal, { translator, parseCompletion });
    return search === undefined ? response : { countInvoicedSearches: () => translator.invoiced, ...response };
  }

  private async requestChatAsResponse(call: ChatCall): Promise<Completion | CompletionStream> {
    const { search, stream, identity, signal } = call;
    const { billFormat } = this;
    const request = withSearch(toResponsesRequest(toDialect(call.body, OPENAI_DIALECT, call.modelRules)), search);
    const { classifyError } = this.responsesClient;
    const parseCompletion = (text: string) =>
      toChatCompletion(parseResponsesCompletion(text, classifyError, billFormat), identity);
    if (!stream) return parseCompletion(await this.responsesClient.post(request, signal));
    const translator = new ResponsesToChatTranslator(identity, classifyError, billFormat);
    return this.streamResponse(call, request, { translator, parseCompletion });
  }

  private async requestResponse(call: ChatCall): Promise<Completion | CompletionStream> {
    const request = withSearch(toResponsesDialect(call.body, call.modelRules), call.search);
    const { billFormat, responsesClient } = this;
    const { classifyError } = responsesClient;
    const parseCompletion = (text: string) => parseResponsesCompletion(text, classifyError, billFormat);
    const format = { translator: new ResponsesEventTranslator(classifyError, billFormat), parseCompletion };
    if (call.stream) return this.streamResponse(call, request, format);
    return parseCompletion(await this.responsesClient.post(request, call.signal));
  }

  private async streamResponse(
    { protocol, signal }: ChatCall,
    request: object,
    format: StreamFormat & { readonly translator: ResponsesEventTranslator },
  ): Promise<CompletionStream> {
    const { translator } = format;
    const stream = await this.responsesClient.stream(request, signal, { ...format, protocol });
    return { countInvoicedSearches: () => translator.invoiced, ...stream };
  }
}

function parseChatCompletion(
  text: string,
  { identity, withoutReasoning, search }: ChatCall,
  classifyError: ClassifyError,
  billFormat: BillFormat,
): Completion {
  const completion = parseCompletionJson(text, classifyError);
  const { x_groq } = completion;
  const transformMessage = withoutReasoning ? omitReasoning : normalizeReasoningField;
  return {
    kind: 'complete',
    protocol: 'chat',
    body: {
      ...completion,
      ...identity,
      choices: completion.choices.map((choice) => transformChoice(choice, transformMessage)),
      ...(x_groq === undefined ? {} : { x_groq: undefined }), // not part of JSON
    },
    usage: parseOpenAiUsage(completion.usage) ?? parseOpenAiUsage(x_groq?.usage),
    vendorId: () => parseProviderRequestId(completion),
    reportedBill: parseReportedBill(completion, billFormat),
    getDeliveredText: () =>
      completion.choices.map(({ message }) => (message ? getGeneratedText(message) : '')).join('\n'),
    // A router reports only the number of the searches, and the sources in the annotations.
    ...(search ? { searches: { statuses: [], invoiced: parseInvoicedSearches(completion.usage) ?? 0 } } : {}),
  };
}

interface Choice {
  readonly message?: Delta;
}

/** Returns the same object if `change` returns the same message. */
function transformChoice(choice: Choice, change: (message: Delta) => Delta): Choice {
  const message = choice.message && change(choice.message);
  return message === choice.message ? choice : { ...choice, message };
}

interface CompletionJson extends GroqFieldsHolder {
  readonly choices: readonly Choice[];
  readonly usage?: unknown;
}

function parseCompletionJson(text: string, classifyError: ClassifyError): CompletionJson {
  let completion: Partial<CompletionJson> | null = null;
  try {
    completion = JSON.parse(text);
  } catch {} // reported below, like any other unexpected response
  const choices: readonly unknown[] = Array.isArray(completion?.choices) ? completion.choices : [];
  const failed = [completion, completion?.x_groq, ...choices].find(isFailing);
  if (failed) {
    // Without any text nothing was generated, so the call can be retried.
    const delivered =
      choices.map((choice) => getGeneratedText((choice as Choice | null)?.message ?? {})).join('') || undefined;
    const failure =
      classifyError(toErrorReport(failed)) ?? new UpstreamError('upstream_error', MESSAGE_INTERRUPTED, { status: 200 });
    throw failure.withDetails({
      deliveredText: delivered,
      vendorId: parseProviderRequestId(completion),
      ...toUsageDetails(failure, parseOpenAiUsage(completion?.usage)),
    });
  }
  if (choices.length === 0 || !choices.every(isChoice)) {
    const details = {
      status: 200,
      deliveredText: extractGeneratedText(text),
      vendorId: parseProviderRequestId(completion),
    };
    throw new UpstreamError('upstream_error', 'The provider sent a response that is not a chat completion', details);
  }
  return completion as CompletionJson;
}

/** A router reports the error of its own provider in the choice: https://openrouter.ai/docs/api-reference/errors */
function isFailing(part: unknown): part is ErrorHolder {
  return Boolean((part as ErrorHolder | null)?.error);
}

function isChoice(choice: unknown): choice is Choice {
  const message = (choice as Choice | null)?.message;
  return typeof message === 'object' && message !== null;
}
