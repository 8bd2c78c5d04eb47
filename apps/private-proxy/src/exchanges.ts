/** Serves requests of callers, from the JSON body to the last byte of the response. */

import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isWithinJsonLimits } from '#application/messages';
import { isJsonObject, type JsonObject } from '#kernel';
import { BODY_TOO_LARGE, MAX_BODY_BYTES } from './body-parser.ts';
import { PRIVATE_MODEL_PREFIX, parseJson } from './gateway-client.ts';
import type { EnclaveResponse, PrivateChats } from './private-chats.ts';
import type { PrivateModelResolver, ResolvedPrivateModel } from './private-model-resolver.ts';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { ProxyError } from './proxy-error.ts';
import { sendEvents, setRequestId } from './send-response.ts';

const PROXY_STOPPING = new ProxyError(503, 'The proxy is stopping', { code: 'stopped', isFinal: true });
/** How long callers may take to read the end of an aborted response. */
const CLOSE_DELAY_MS = 1_000;
/** Appears only in the log. */
const CALLER_DISCONNECTED = new ProxyError(499, 'The caller disconnected', { code: 'caller_left' });

/** A request that was translated from a client protocol, and the translation of its response. */
export interface TranslatedExchange {
  /** Whether the caller requested a stream. */
  readonly isStreaming: boolean;
  /**
   * The body that is encrypted. It always requests a stream, because the gateway extends the hold while a stream is
   * generated. For other responses, the gateway holds the maximum price at once.
   */
  readonly chat: JsonObject;
  /** Returns the non-streaming response as JSON. */
  collect(response: EnclaveResponse): Promise<string>;
  /** Yields the response as SSE events. */
  streamEvents(response: EnclaveResponse): AsyncGenerator<string>;
}

export class Exchanges {
  private readonly running = new Set<{ readonly controller: AbortController; readonly ended: Promise<void> }>();

  constructor(
    private readonly names: PrivateModelResolver,
    private readonly chats: PrivateChats,
  ) {}

  /**
   * Serves a request.
   * @throws any error before the first byte of the response; later errors are sent as an event of the stream
   */
  async serve(
    request: FastifyRequest,
    reply: FastifyReply,
    protocol: ClientProtocol,
    plan: (body: JsonObject, model: ResolvedPrivateModel) => TranslatedExchange | Promise<TranslatedExchange>,
  ): Promise<FastifyReply> {
    const { logFields } = request;
    const { id, bytes, isStreaming, collect, streamEvents } = await this.prepareRequest(request, plan);
    Object.assign(logFields, { model: PRIVATE_MODEL_PREFIX + id, requestBytes: bytes.length });
    const signal = this.trackExchange(reply);
    const sendChat = async () => {
      const response = await this.chats.send(id, bytes, signal);
      logFields.requestId = response.requestId;
      return response;
    };
    const throwExplained = async (error: unknown): Promise<never> => {
      throw await this.chats.explainError(error, logFields.requestId, signal);
    };
    if (isStreaming) {
      const all = async function* () {
        try {
          yield* streamEvents(await sendChat());
        } catch (error) {
          await throwExplained(error);
        }
      };
      return sendEvents(reply, protocol, logFields, all());
    }
    const json = await sendChat().then(collect).catch(throwExplained);
    logFields.responseBytes = Buffer.byteLength(json);
    setRequestId(reply, protocol, logFields);
    return reply.type('application/json').send(json);
  }

  /**
   * Does not return the parsed body, because it takes many times the memory of its text and must not be retained while
   * the response is awaited.
   */
  private async prepareRequest(
    request: FastifyRequest,
    plan: (body: JsonObject, model: ResolvedPrivateModel) => TranslatedExchange | Promise<TranslatedExchange>,
  ) {
    const body = parseJsonBody(request);
    const model = await this.names.resolve(body.model);
    const { chat, ...exchange } = await plan(body, model);
    return { ...exchange, id: model.id, bytes: serializeChat(chat) };
  }

  /**
   * Waits at most `timeoutMs` for the exchanges that are running when it is called. Then it aborts all that are still
   * running, and returns even if their callers do not read the end of the response.
   */
  async drain(timeoutMs: number): Promise<void> {
    const ended = Promise.all([...this.running].map(({ ended }) => ended));
    await Promise.race([ended, delay(timeoutMs, undefined, { ref: false })]);
    for (const { controller } of this.running) controller.abort(PROXY_STOPPING);
    await Promise.race([ended, delay(CLOSE_DELAY_MS, undefined, { ref: false })]);
  }

  /** Returns a signal that is aborted when the response has ended, when the caller disconnects, or by `drain`. */
  private trackExchange({ raw }: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const running = { controller, ended };
    this.running.add(running);
    const onClose = () => {
      this.running.delete(running);
      controller.abort(CALLER_DISCONNECTED);
      resolve();
    };
    if (raw.destroyed) onClose();
    else raw.once('close', onClose);
    return controller.signal;
  }
}

/** @throws ProxyError if the body is not a JSON object, or has too many parts */
export function parseJsonBody(request: FastifyRequest): JsonObject {
  const text = String(request.body);
  // Otherwise the bytes would stay in memory as long as the request runs.
  request.body = undefined;
  if (!isWithinJsonLimits(text)) throw new ProxyError(400, 'The body has too many of the characters {, [ and :');
  const body = parseJson(text);
  if (!isJsonObject(body)) throw new ProxyError(400, 'The body must be a JSON object');
  return body;
}

function serializeChat(chat: JsonObject): Buffer {
  const bytes = Buffer.from(stringifyChat(chat));
  // Serialised numbers can be longer than they were in the body.
  if (bytes.length > MAX_BODY_BYTES) throw BODY_TOO_LARGE;
  return bytes;
}

function stringifyChat(chat: JsonObject): string {
  try {
    return JSON.stringify(chat);
  } catch {
    throw new ProxyError(400, 'The body is nested too deeply');
  }
}
