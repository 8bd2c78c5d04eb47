/** OpenAI's shape of a response, complete: strict clients need every key. */
import { getQuantity } from '#domain';
import { type JsonObject, toUsdJsonNumber } from '#kernel';
import { toCostDetails } from '../../billing/cost-details.ts';
import type { Receipt } from '../../billing/order.ts';
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

/** A choice of a chat answer, in one piece or as a piece of it. */
export interface ChatChoice {
  readonly message?: ChatDelta;
  readonly delta?: ChatDelta;
  readonly finish_reason?: string | null;
  readonly logprobs?: { readonly content?: unknown } | null;
}

/** Why an answer ended that is not complete, in OpenAI's two vocabularies. */
const INCOMPLETE_REASONS: ReadonlyMap<string, string> = new Map([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
]);
/** Why a response failed, in one of OpenAI's codes. */
export interface ResponseError {
  readonly code: string;
  readonly message: string;
}

const EMPTY_COMPACTION_ERROR: ResponseError = {
  code: 'server_error',
  message: 'The model wrote nothing that the conversation could go on from',
};

/** A response as it is answered. */
export interface ResponseJson {
  readonly status: string;
  readonly [field: string]: unknown;
}

/** A response while it is made, out of the choices of a chat answer or the events of a native one. */
export class ResponseBuilder {
  readonly id: string;
  private readonly body: ResponsesBody;
  private output: ResponseOutput | NativeOutput | CompactionOutput;
  private readonly createdAt = getUnixSeconds();
  private model: string;
  private source: CompletionSource | undefined;
  private finishReason = 'stop';

  constructor(
    id: string,
    private readonly request: ParsedResponsesRequest,
  ) {
    const { body } = request.native;
    this.id = `resp_${id}`;
    this.body = body;
    this.model = body.model;
    this.output = request.isCompaction
      ? new CompactionOutput(id)
      : new ResponseOutput(id, request.toolset, requestsEncryptedReasoning(body));
  }

  /** The first events. */
  setSource(source: CompletionSource): void {
    const { model, protocol } = source;
    this.model = model;
    this.source = source;
    if (protocol === 'responses')
      this.output = new NativeOutput(requestsEncryptedReasoning(this.body), this.request.toolset);
  }

  /** A piece of the answer, or all of it. */
  accept(completion: JsonObject): readonly TypedEvent[] {
    const { output } = this;
    if (output instanceof NativeOutput) return output.accept(completion);
    // Only one choice is ever asked for.
    const [choice] = (completion.choices ?? []) as readonly ChatChoice[];
    if (!choice) return [];
    this.finishReason = choice.finish_reason ?? this.finishReason;
    return output.accept(choice.message ?? choice.delta ?? {}, choice.logprobs?.content);
  }

  /** A search that is not an item of the answer by itself, as one in Responses is. */
  recordSearch(search: SearchStatus): readonly TypedEvent[] {
    return this.output instanceof NativeOutput ? [] : this.output.recordSearch(search);
  }

  /** Nothing more will come. */
  end(): readonly TypedEvent[] {
    if (this.output instanceof NativeOutput) return [];
    return this.output.end(this.incompleteReason ? 'incomplete' : 'completed');
  }

  /** What can be continued. @param provider the maker */
  getRetainedItems(provider: string): readonly JsonObject[] {
    const { output } = this;
    return output instanceof NativeOutput
      ? output.getRetainedItems(provider)
      : (output.retainedItems as readonly object[] as readonly JsonObject[]);
  }

  /** As it is before anything has come. */
  buildInitial(): ResponseJson {
    return this.toResponseJson({ status: 'in_progress', output: [], output_text: '', usage: null });
  }

  /**
   * As it is in the end.
   * @param receipt what it came to, if it could be charged
   * @param error why it broke off, if it did
   */
  build(receipt: Receipt | undefined, error?: ResponseError): ResponseJson {
    if (error) this.output.interrupt();
    else if (this.hasNoSummary) return this.build(receipt, EMPTY_COMPACTION_ERROR);
    const { items, outputText } = this.output;
    const outcome = { output: items, output_text: outputText, usage: receipt ? toUsageJson(receipt) : null };
    if (error) return this.toResponseJson({ ...outcome, status: 'failed', store: false, error });
    const { incompleteReason: reason } = this;
    if (reason) return this.toResponseJson({ ...outcome, status: 'incomplete', incomplete_details: { reason } });
    return this.toResponseJson({ ...outcome, status: 'completed', completed_at: getUnixSeconds() });
  }

  /** A conversation of which nothing would be left. */
  private get hasNoSummary(): boolean {
    return this.output instanceof CompactionOutput && this.output.items.length === 0;
  }

  /** What the conversation goes on from, in OpenAI's shape. @throws UpstreamError when that is nothing */
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

/** Usage with its cost, as Responses count it: the parts are contained in the sums. */
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

function getUnixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
