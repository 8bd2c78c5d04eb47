/** How an answer reaches the client. */
import type { TokenPricedModel } from '#catalogue';
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

/** The endpoint that answers, and its protocol. */
export interface CompletionSource {
  /** The id of the model, by whichever name it was requested. */
  readonly model: string;
  readonly protocol: ChatProtocol;
  /** The slug of the endpoint. */
  readonly provider: string;
  /** The parameters that the endpoint knows: all others of the request were left out. */
  readonly supportedParameters: readonly string[];
  /** How it was sampled, where that is not as the request says. */
  readonly sampling?: AppliedSampling;
}

/** How long clients wait in silence. */
export abstract class KeepAliveSettings {
  /** Milliseconds from the hold to the first sign of life of a stream; shorter waits that fail have a status. */
  abstract readonly firstCommentMs: number;
}

/** What takes the events of an answer. */
export interface CompletionSink {
  /** Resolves when there is room for more. Everything is written, also when the client has gone. */
  write(events: Uint8Array): Promise<void> | undefined;
  /** Takes searches as they begin and end, between the events that they stand between. */
  writeSearch?(search: SearchStatus): Promise<void> | undefined;
}

/** Where a streamed answer goes. */
export interface CompletionWriter extends StreamWriter, CompletionSink {
  /** Whether anyone receives what is written: the client, or a record that it can still fetch. */
  readonly isListening: boolean;
  /** Starts the answer; until then nothing of it is sent. */
  begin(source: CompletionSource): void;
  /** Shows that there will be an answer, though nothing of it is there yet: a failure can then only be a part of it. */
  startHeartbeat?(): void;
}

/** An answer in one piece, before it is paid. */
export interface CompletionDraft extends CompletionSource {
  readonly body: Readonly<Record<string, unknown>>;
  /** The searches that were made for it, as they ended. */
  readonly searches: readonly SearchStatus[];
}

export interface BilledCompletion extends CompletionDraft {
  readonly receipt: Receipt;
}

/** How an answer is made, once its money is held. One of the two is called, once. */
export interface ChatExecutor {
  /** @throws UpstreamError when there is no answer, and the payer owes nothing */
  complete(): Promise<CompletionDraft>;
  /**
   * Begins the client when there is an answer, and writes all of it.
   * @returns what broke the answer off, if the payer owes what the client had of it
   * @throws UpstreamError when the payer owes nothing
   */
  stream(client: CompletionWriter): Promise<UpstreamError | undefined>;
}

export function toCompletionSource(
  { id: model }: TokenPricedModel,
  { response, endpoint }: EndpointResponse<Completion | CompletionStream>,
): CompletionSource {
  const { protocol: language, sampling } = response;
  return {
    model,
    protocol: language,
    provider: endpoint.slug,
    supportedParameters: endpoint.parameters,
    ...(sampling ? { sampling } : {}),
  };
}

/** An event of a stream that no upstream has sent. */
export function createChunkEvent(
  { id, model, provider, created }: CompletionIdentity,
  {
    delta,
    finish_reason = null,
    index = 0,
  }: {
    readonly delta: object;
    readonly finish_reason?: string | null;
    readonly index?: number;
  },
): Uint8Array {
  const choices = [{ index, delta, finish_reason }];
  const chunk = { id, object: 'chat.completion.chunk', created, model, provider, choices };
  return Buffer.from(formatSseEvent(JSON.stringify(chunk)));
}

/** The end of an answer that has reached its limit. @param choices how many there are of it */
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
