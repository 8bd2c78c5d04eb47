/** How a completion is produced and written to the client. */
import type { TokenPricedModel } from '#catalogue';
import type { Usage } from '#domain';
import type { StreamWriter } from '../../billing/billing-engine.ts';
import type { Receipt } from '../../billing/order.ts';
import type { EndpointResponse } from '../../billing/upstream-call.ts';
import type { UpstreamError } from '../../errors.ts';
import type {
  AppliedSampling,
  ChatProtocol,
  Completion,
  CompletionIdentity,
  CompletionStream,
} from '../../providers/provider.ts';
import type { SearchStatus } from '../../providers/web-search.ts';
import { formatSseEvent } from '../../wire/sse.ts';

/** The model and the endpoint that generate a completion, and the protocol in which the completion arrives. */
export interface CompletionSource {
  /** The model id, even if the request used an alias. */
  readonly model: string;
  readonly protocol: ChatProtocol;
  /** The slug of the endpoint. */
  readonly provider: string;
  /** The parameters that the endpoint supports. All other parameters of the request were omitted. */
  readonly supportedParameters: readonly string[];
  /** The sampling parameters that were applied, if they differ from those of the request. */
  readonly sampling?: AppliedSampling;
  /** The usage of the input, if the provider reported it before its first output. Its output is preliminary. */
  readonly inputUsage?: Usage;
}

export abstract class KeepAliveSettings {
  /**
   * Time from the hold to the first comment of a stream that has no events yet. A failure before the comment gets its
   * own HTTP status.
   */
  abstract readonly firstCommentMs: number;
}

/** Receives the SSE events of a completion. */
export interface CompletionSink {
  /** Resolves when the next events can be written. Events may still be written after the client has disconnected. */
  write(events: Uint8Array): Promise<void> | undefined;
  /** Receives the start and the end of each search, in order with the events. */
  writeSearch?(search: SearchStatus): Promise<void> | undefined;
}

/** Writes a streamed completion to the client, in the client's protocol. */
export interface CompletionWriter extends StreamWriter, CompletionSink {
  /** Whether events are still needed: the client is connected, or the response is stored and can be fetched later. */
  readonly isListening: boolean;
  /** Starts the response. Called once, before the first event. */
  begin(source: CompletionSource): void;
  /**
   * Starts the HTTP response with a comment before the first event, because a proxy may close an idle connection. A
   * later failure can only be reported within the stream.
   */
  startHeartbeat?(): void;
}

/** A non-streaming completion that is not settled yet. */
export interface CompletionDraft extends CompletionSource {
  readonly body: Readonly<Record<string, unknown>>;
  /** The searches that were made for the completion, in their final states. */
  readonly searches: readonly SearchStatus[];
}

export interface BilledCompletion extends CompletionDraft {
  readonly receipt: Receipt;
}

/** Produces one completion after its money is held. Exactly one of the methods is called, once. */
export interface ChatExecutor {
  /** @throws UpstreamError if the completion fails; `BillingEngine.sell` decides what the payer then owes */
  complete(): Promise<CompletionDraft>;
  /**
   * Starts the client's response once an endpoint responds, and writes the completion.
   * @returns the failure that interrupted the completion if the payer owes the part that was generated, else undefined
   * @throws UpstreamError after any other failure; `BillingEngine.sellStream` decides what the payer then owes
   */
  stream(client: CompletionWriter): Promise<UpstreamError | undefined>;
}

export function toCompletionSource(
  { id: model }: TokenPricedModel,
  { response, endpoint }: EndpointResponse<Completion | CompletionStream>,
): CompletionSource {
  const { protocol: language, sampling } = response;
  const inputUsage = response.kind === 'stream' ? response.getInputUsage?.() : undefined;
  return {
    model,
    protocol: language,
    provider: endpoint.slug,
    supportedParameters: endpoint.parameters,
    ...(sampling ? { sampling } : {}),
    ...(inputUsage ? { inputUsage } : {}),
  };
}

/** Creates an SSE event with a chunk of our own, in the format of OpenAI's streamed chats. */
export function createChunkEvent(
  { id, model, provider, created }: CompletionIdentity,
  {
    delta,
    finish_reason = null,
    index = 0,
    ...rest
  }: {
    readonly delta: object;
    readonly finish_reason?: string | null;
    readonly native_finish_reason?: string;
    readonly index?: number;
  },
): Uint8Array {
  const choices = [{ index, delta, finish_reason, ...rest }];
  const chunk = { id, object: 'chat.completion.chunk', created, model, provider, choices };
  return Buffer.from(formatSseEvent(JSON.stringify(chunk)));
}

/** Creates the final events of a completion that has reached its output limit. @param choices number of choices */
export function createLengthLimitEvents(
  protocol: ChatProtocol,
  identity: CompletionIdentity,
  choices: number,
): Uint8Array {
  if (protocol === 'responses') {
    const response = { object: 'response', incomplete_details: { reason: 'max_output_tokens' } };
    return Buffer.from(formatSseEvent(JSON.stringify({ type: 'response.incomplete', response })));
  }
  const end = { delta: {}, finish_reason: 'length' };
  return Buffer.concat(Array.from({ length: choices }, (_, index) => createChunkEvent(identity, { ...end, index })));
}
