/** A request of a caller's, from its JSON to the last byte of its answer. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isJsonObject, isWithinJsonLimits, type JsonObject } from '#application/messages';
import { BODY_TOO_LARGE, MAX_BODY_BYTES } from './bodies.ts';
import { PREFIX, parseJson } from './gateway.ts';
import type { ModelNames, ResolvedPrivateModel } from './model-names.ts';
import type { EnclaveAnswer, PrivateChats } from './private-chats.ts';
import type { ClientProtocol } from './protocols/client-protocol.ts';
import { ProxyError } from './proxy-error.ts';
import { sendEvents, setRequestId } from './send-response.ts';

const STOPPED = new ProxyError(503, 'The proxy is stopping', { code: 'stopped', final: true });
/** How long callers may take to read the end of what was stopped. */
const LINGER_MS = 1_000;
/** Seen by nobody but the log. */
const LEFT = new ProxyError(499, 'The caller left', { code: 'caller_left' });

/** What a face makes of a request, and of its answer. */
export interface TranslatedExchange {
  /** Whether the caller wants events. */
  readonly streams: boolean;
  /**
   * What is encrypted, which always asks for a stream: only that is paid while it is made, and stopped where the money ends.
   */
  readonly chat: JsonObject;
  /** The answer in one piece, as JSON. */
  whole(answer: EnclaveAnswer): Promise<string>;
  /** The same as events. */
  events(answer: EnclaveAnswer): AsyncGenerator<string>;
}

export class Exchanges {
  private readonly running = new Set<{ readonly controller: AbortController; readonly ended: Promise<void> }>();

  constructor(
    private readonly names: ModelNames,
    private readonly chats: PrivateChats,
  ) {}

  /**
   * Answers a request, or throws why it does not.
   */
  async serve(
    request: FastifyRequest,
    reply: FastifyReply,
    face: ClientProtocol,
    plan: (body: JsonObject, model: ResolvedPrivateModel) => TranslatedExchange,
  ): Promise<FastifyReply> {
    const { note } = request;
    const { id, bytes, streams, whole, events } = await this.planned(request, plan);
    Object.assign(note, { model: PREFIX + id, asked: bytes.length });
    const signal = this.signalOf(reply);
    const ask = async () => {
      const answer = await this.chats.ask(id, bytes, signal);
      note.requestId = answer.requestId;
      return answer;
    };
    const why = async (error: unknown): Promise<never> => {
      throw await this.chats.explained(error, note.requestId, signal);
    };
    if (streams) {
      const all = async function* () {
        try {
          yield* events(await ask());
        } catch (error) {
          await why(error);
        }
      };
      return sendEvents(reply, face, note, all());
    }
    const answer = await ask().then(whole).catch(why);
    note.answered = Buffer.byteLength(answer);
    setRequestId(reply, face, note);
    return reply.type('application/json').send(answer);
  }

  /** Without the body as it was parsed, which takes many times its bytes and is not kept until the answer. */
  private async planned(
    request: FastifyRequest,
    plan: (body: JsonObject, model: ResolvedPrivateModel) => TranslatedExchange,
  ) {
    const body = parseJsonBody(request);
    const model = await this.names.meant(body.model);
    const { chat, ...exchange } = plan(body, model);
    return { ...exchange, id: model.id, bytes: written(chat) };
  }

  /** Waits until nothing is running; what still is after so many milliseconds is ended, and not waited for if nobody reads that. */
  async drained(withinMs: number): Promise<void> {
    const ended = Promise.all([...this.running].map(({ ended }) => ended));
    await Promise.race([ended, delay(withinMs, undefined, { ref: false })]);
    for (const { controller } of this.running) controller.abort(STOPPED);
    await Promise.race([ended, delay(LINGER_MS, undefined, { ref: false })]);
  }

  /** Aborted when the caller leaves, and when the proxy stops. */
  private signalOf({ raw }: FastifyReply): AbortSignal {
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const running = { controller, ended };
    this.running.add(running);
    const leave = () => {
      this.running.delete(running);
      controller.abort(LEFT);
      resolve();
    };
    if (raw.destroyed) leave();
    else raw.once('close', leave);
    return controller.signal;
  }
}

/** @throws ProxyError for what is no JSON object */
export function parseJsonBody(request: FastifyRequest): JsonObject {
  const text = String(request.body);
  // The text is as long as the request runs otherwise.
  request.body = undefined;
  if (!isWithinJsonLimits(text)) throw new ProxyError(400, 'The body has too many objects, lists and fields');
  const body = parseJson(text);
  if (!isJsonObject(body)) throw new ProxyError(400, 'The body must be a JSON object');
  return body;
}

function written(chat: JsonObject): Buffer {
  const bytes = Buffer.from(textOf(chat));
  // Numbers may be longer than they were.
  if (bytes.length > MAX_BODY_BYTES) throw BODY_TOO_LARGE;
  return bytes;
}

function textOf(chat: JsonObject): string {
  try {
    return JSON.stringify(chat);
  } catch {
    throw new ProxyError(400, 'The body is nested too deeply');
  }
}
