/** Builds responses in OpenAI's format. They contain all keys that strict clients require. */
import { getQuantity } from '#domain';
import { type JsonObject, toUsdJsonNumber } from '#kernel';
import { toCostDetails } from '../../billing/cost-details.ts';
import type { Receipt } from '../../billing/order.ts';
import type { Clock } from '../../clock.ts';
import { UpstreamError } from '../../errors.ts';
import type { SearchStatus } from '../../providers/web-search.ts';

import type { CompletionSource } from '../chat/completion-writer.ts';
import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import type { ResponsesBody } from './body.ts';
import { CompactionOutput, toCompactedConversation } from './compaction.ts';
import { toEchoedParameters } from './echoed-parameters.ts';
import { NativeOutput } from './native-output.ts';
import { requestsEncryptedReasoning } from './native-request.ts';
import { ResponseOutput } from './output.ts';
import type { ParsedResponsesRequest } from './request.ts';
import { toListedItem } from './stored-items.ts';

/** A choice of a chat completion, or a chunk of one. */
export interface ChatChoice {
  readonly message?: ChatDelta;
  readonly delta?: ChatDelta;
  readonly finish_reason?: string | null;
  readonly logprobs?: { readonly content?: unknown } | null;
}

/** Reasons of an incomplete response, by the finish reason of the chat. */
const INCOMPLETE_REASONS: ReadonlyMap<string, string> = new Map([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
]);
/** The error of a failed response, with one of OpenAI's codes. */
export interface ResponseError {
  readonly code: string;
  readonly message: string;
}

const EMPTY_COMPACTION_ERROR: ResponseError = {
  code: 'server_error',
  message: 'The model generated no summary of the conversation',
};

/** A response as it is returned to the client. */
export interface ResponseJson {
  readonly status: string;
  readonly [field: string]: unknown;
}

/** Builds a response from a chat completion or its chunks, or from the events of the Responses API. */
export class ResponseBuilder {
  readonly id: string;
  private readonly body: ResponsesBody;
  private output: ResponseOutput | NativeOutput | CompactionOutput;
  private readonly createdAt: number;
  private model: string;
  private source: CompletionSource | undefined;
  private finishReason = 'stop';

  constructor(
    id: string,
    private readonly request: ParsedResponsesRequest,
    private readonly clock: Clock,
  ) {
    const { body } = request.native;
    this.id = `resp_${id}`;
    this.body = body;
    this.createdAt = getUnixSeconds(clock);
    this.model = body.model;
    this.output = request.isCompaction
      ? new CompactionOutput(id)
      : new ResponseOutput(id, request.toolset, requestsEncryptedReasoning(body));
  }

  /** Sets the endpoint that generates the completion, and selects the conversion for its protocol. */
  setSource(source: CompletionSource): void {
    const { model, protocol } = source;
    this.model = model;
    this.source = source;
    if (protocol === 'responses')
      this.output = new NativeOutput(requestsEncryptedReasoning(this.body), this.request.toolset);
  }

  /** Adds a chunk of the completion, or all of it. @returns the events to send for it */
  accept(completion: JsonObject): readonly TypedEvent[] {
    const { output } = this;
    if (output instanceof NativeOutput) return output.accept(completion);
    // Requests of this protocol always have one choice.
    const [choice] = (completion.choices ?? []) as readonly ChatChoice[];
    if (!choice) return [];
    this.finishReason = choice.finish_reason ?? this.finishReason;
    return output.accept(choice.message ?? choice.delta ?? {}, choice.logprobs?.content);
  }

  /** Adds the state of a search. Does nothing for native output, which already contains its searches as items. */
  recordSearch(search: SearchStatus): readonly TypedEvent[] {
    return this.output instanceof NativeOutput ? [] : this.output.recordSearch(search);
  }

  /** Ends the open items of a chat. @returns their events; none for native output, which ends its items itself */
  end(): readonly TypedEvent[] {
    if (this.output instanceof NativeOutput) return [];
    return this.output.end(this.incompleteReason ? 'incomplete' : 'completed');
  }

  /** Returns the output items for later requests. @param provider slug of the provider that generated them */
  getRetainedItems(provider: string): readonly JsonObject[] {
    const { output } = this;
    return output instanceof NativeOutput
      ? output.getRetainedItems(provider)
      : (output.retainedItems as readonly object[] as readonly JsonObject[]);
  }

  /** Returns the response before it has any output. */
  buildInitial(): ResponseJson {
    return this.toResponseJson({ status: 'in_progress', output: [], output_text: '', usage: null });
  }

  /**
   * Returns the final response.
   * @param receipt undefined if it is unknown what was charged
   * @param error the failure that interrupted the response, if any
   */
  build(receipt: Receipt | undefined, error?: ResponseError): ResponseJson {
    if (error) this.output.interrupt();
    else if (this.hasNoSummary) return this.build(receipt, EMPTY_COMPACTION_ERROR);
    const { items, outputText } = this.output;
    const outcome = { output: items, output_text: outputText, usage: receipt ? toUsageJson(receipt) : null };
    if (error) return this.toResponseJson({ ...outcome, status: 'failed', store: false, error });
    const { incompleteReason: reason } = this;
    if (reason) return this.toResponseJson({ ...outcome, status: 'incomplete', incomplete_details: { reason } });
    return this.toResponseJson({ ...outcome, status: 'completed', completed_at: getUnixSeconds(this.clock) });
  }

  /** Whether a compaction produced no summary, so that the conversation would be lost. */
  private get hasNoSummary(): boolean {
    return this.output instanceof CompactionOutput && this.output.items.length === 0;
  }

  /** Returns the compacted conversation in OpenAI's format. @throws UpstreamError if the model generated no summary */
  buildCompaction(receipt: Receipt): JsonObject {
    const { id, createdAt, output, request } = this;
    if (this.hasNoSummary) throw new UpstreamError('upstream_error', EMPTY_COMPACTION_ERROR.message);
    const items = toCompactedConversation(
      request.inputItems,
      output.items as readonly object[] as readonly JsonObject[],
    );
    return {
      id,
      object: 'response.compaction',
      created_at: createdAt,
      output: items.map((item, at) => toListedItem(item, `${id.slice('resp_'.length)}_${at}`)),
      usage: toUsageJson(receipt),
    };
  }

  private get incompleteReason(): string | undefined {
    return this.output instanceof NativeOutput
      ? this.output.incompleteReason
      : INCOMPLETE_REASONS.get(this.finishReason);
  }

  private toResponseJson(state: ResponseJson): ResponseJson {
    return {
      id: this.id,
      object: 'response',
      created_at: this.createdAt,
      completed_at: null,
      model: this.model,
      error: null,
      incomplete_details: null,
      ...toEchoedParameters(this.request, this.source),
      ...state,
    };
  }
}

/** Converts usage and cost to OpenAI's format, in which `input_tokens` and `output_tokens` include their details. */
function toUsageJson(receipt: Receipt) {
  const { usage, charged } = receipt;
  const input = getQuantity('input', usage);
  const output = getQuantity('output', usage);
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: getQuantity('cacheRead', usage),
      cache_write_tokens: getQuantity('cacheWrite', usage),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: getQuantity('reasoning', usage) },
    total_tokens: input + output,
    cost: toUsdJsonNumber(charged),
    cost_details: toCostDetails(receipt, 'others'),
  };
}

function getUnixSeconds(clock: Clock): number {
  return Math.floor(clock.nowMs() / 1000);
}
