/** OpenAI's shape of a response, complete: strict clients need every key. */
import { getQuantity } from '#domain';
import { toUsdJsonNumber } from '#kernel';
import { costDetails } from '../../billing/cost-details.ts';
import type { Receipt } from '../../billing/purchase.ts';
import { UpstreamError } from '../../errors.ts';
import type { SearchStatus } from '../../providers/web-search.ts';
import type { JsonObject } from '../../wire/json-object.ts';
import type { CompletionSource } from '../chat/completion-writer.ts';
import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import type { ResponsesBody } from './body.ts';
import { CompactionOutput, toCompactedConversation } from './compaction.ts';
import { toEchoedParameters } from './echoed-parameters.ts';
import { NativeOutput } from './native-output.ts';
import { wantsEncrypted } from './native-request.ts';
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
const CUT_SHORT: ReadonlyMap<string, string> = new Map([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
]);
/** Why a response failed, in one of OpenAI's codes. */
export interface ResponseError {
  readonly code: string;
  readonly message: string;
}

const NOTHING_TO_GO_ON_FROM: ResponseError = {
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
  private readonly createdAt = seconds();
  private model: string;
  private source: CompletionSource | undefined;
  private finish = 'stop';

  constructor(
    id: string,
    private readonly request: ParsedResponsesRequest,
  ) {
    const { body } = request.native;
    this.id = `resp_${id}`;
    this.body = body;
    this.model = body.model;
    this.output = request.compacts
      ? new CompactionOutput(id)
      : new ResponseOutput(id, request.toolset, wantsEncrypted(body));
  }

  /** The first events. */
  answeredBy(source: CompletionSource): void {
    const { model, language } = source;
    this.model = model;
    this.source = source;
    if (language === 'responses') this.output = new NativeOutput(wantsEncrypted(this.body), this.request.toolset);
  }

  /** A piece of the answer, or all of it. */
  accept(answer: JsonObject): readonly TypedEvent[] {
    const { output } = this;
    if (output instanceof NativeOutput) return output.accept(answer);
    // Only one choice is ever asked for.
    const [choice] = (answer.choices ?? []) as readonly ChatChoice[];
    if (!choice) return [];
    this.finish = choice.finish_reason ?? this.finish;
    return output.accept(choice.message ?? choice.delta ?? {}, choice.logprobs?.content);
  }

  /** A search that is not an item of the answer by itself, as one in Responses is. */
  search(search: SearchStatus): readonly TypedEvent[] {
    return this.output instanceof NativeOutput ? [] : this.output.search(search);
  }

  /** Nothing more will come. */
  end(): readonly TypedEvent[] {
    if (this.output instanceof NativeOutput) return [];
    return this.output.end(this.cutShort ? 'incomplete' : 'completed');
  }

  /** What can be continued. @param provider the maker */
  kept(provider: string): readonly JsonObject[] {
    const { output } = this;
    return output instanceof NativeOutput
      ? output.kept(provider)
      : (output.kept as readonly object[] as readonly JsonObject[]);
  }

  /** As it is before anything has come. */
  started(): ResponseJson {
    return this.wire({ status: 'in_progress', output: [], output_text: '', usage: null });
  }

  /**
   * As it is in the end.
   * @param receipt what it came to, if it could be charged
   * @param error why it broke off, if it did
   */
  finished(receipt: Receipt | undefined, error?: ResponseError): ResponseJson {
    if (error) this.output.breakOff();
    else if (this.isLost) return this.finished(receipt, NOTHING_TO_GO_ON_FROM);
    const { items, outputText } = this.output;
    const outcome = { output: items, output_text: outputText, usage: receipt ? usageWire(receipt) : null };
    if (error) return this.wire({ ...outcome, status: 'failed', store: false, error });
    const { cutShort: reason } = this;
    if (reason) return this.wire({ ...outcome, status: 'incomplete', incomplete_details: { reason } });
    return this.wire({ ...outcome, status: 'completed', completed_at: seconds() });
  }

  /** A conversation of which nothing would be left. */
  private get isLost(): boolean {
    return this.output instanceof CompactionOutput && this.output.items.length === 0;
  }

  /** What the conversation goes on from, in OpenAI's shape. @throws UpstreamError when that is nothing */
  compacted(receipt: Receipt): JsonObject {
    const { id, createdAt, output, request } = this;
    if (this.isLost) throw new UpstreamError('upstream_error', NOTHING_TO_GO_ON_FROM.message);
    const items = toCompactedConversation(request.said, output.items as readonly object[] as readonly JsonObject[]);
    return {
      id,
      object: 'response.compaction',
      created_at: createdAt,
      output: items.map((item, at) => toListedItem(item, `${id.slice('resp_'.length)}_${at}`)),
      usage: usageWire(receipt),
    };
  }

  private get cutShort(): string | undefined {
    return this.output instanceof NativeOutput ? this.output.cutShort : CUT_SHORT.get(this.finish);
  }

  private wire(state: ResponseJson): ResponseJson {
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
function usageWire(receipt: Receipt) {
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
    cost_details: costDetails(receipt, 'others'),
  };
}

function seconds(): number {
  return Math.floor(Date.now() / 1000);
}
