import type { FastifyReply } from 'fastify';
import { type ChatConnection, MAX_SAVED_BYTES, type SavedHttpResponse } from '#application';
import type { BodyParser } from '../validation/body-parser.ts';
import { completeHeaders } from './response-headers.ts';

/** A response without the base64 text of its images, as `SavedHttpResponse` has it. */
interface ShortResponse extends Required<Pick<SavedHttpResponse, 'images'>> {
  readonly body: string;
}

/** Records a response while it is sent, so that it can be replayed. */
export class ResponseRecording {
  private chunks: Uint8Array[] = [];
  private size = 0;
  private ended: Promise<void> | undefined;
  private shortForm: ShortResponse | undefined;

  /** @param onEnd receives the response, or undefined if there is none that could be replayed */
  constructor(
    private readonly reply: FastifyReply,
    private readonly onEnd: (response: SavedHttpResponse | undefined) => Promise<void>,
  ) {}

  add(chunk: Uint8Array): void {
    this.size += chunk.byteLength;
    if (this.size <= MAX_SAVED_BYTES) this.chunks.push(chunk);
    else this.chunks = [];
  }

  /** @param shortForm what is saved if the response is too long */
  setShortForm(shortForm: ShortResponse): void {
    this.shortForm = shortForm;
  }

  /**
   * Resolves when the end of the response may be sent: from then on, a repeated request gets the saved response, if it
   * could be saved.
   */
  end(last: unknown, extra: Pick<SavedHttpResponse, 'isIncomplete'> = {}): Promise<void> {
    this.ended ??= this.onEnd(this.toSavedResponse(last, extra));
    return this.ended;
  }

  private toSavedResponse(
    last: unknown,
    extra: Pick<SavedHttpResponse, 'isIncomplete'>,
  ): SavedHttpResponse | undefined {
    if (typeof last !== 'string' && !(last instanceof Uint8Array)) return undefined;
    this.add(Buffer.from(last));
    const { reply, shortForm } = this;
    const head = { status: reply.statusCode, headers: reply.getHeaders(), ...extra };
    if (this.size <= MAX_SAVED_BYTES) return { ...head, body: Buffer.concat(this.chunks) };
    return shortForm && { ...head, images: shortForm.images, body: Buffer.from(shortForm.body) };
  }
}

const recordings = new WeakMap<FastifyReply, ResponseRecording>();

export function attachRecording(reply: FastifyReply, recording: ResponseRecording): void {
  recordings.set(reply, recording);
}

/** For code that writes a response without Fastify. Returns undefined unless the response is recorded. */
export function getRecording(reply: FastifyReply): ResponseRecording | undefined {
  return recordings.get(reply);
}

/**
 * Whether the request has `store: true`, or its response is recorded for repeated requests. Such a response is
 * completed even without a client.
 */
export function isResponseStored(reply: FastifyReply): boolean {
  const { store } = (reply.request.body ?? {}) as { readonly store?: unknown };
  return store === true || recordings.has(reply);
}

/**
 * Resolves when the client disconnects before the end of its response.
 * @param onClose called when the connection or the response has ended
 */
export function waitForDisconnect({ raw }: FastifyReply, onClose?: () => void): Promise<void> {
  return new Promise((resolve) => {
    if (raw.destroyed) resolve();
    raw.on('close', () => {
      onClose?.();
      if (!raw.writableEnded) resolve();
    });
  });
}

/**
 * The client of a paid request. `disconnected` is a getter, so that streams, which have their own writer, add
 * no listener here.
 */
export class HttpClientConnection implements ChatConnection {
  constructor(
    private readonly reply: FastifyReply,
    private readonly bodies: Pick<BodyParser, 'reserveMemory'>,
  ) {}

  get disconnected(): Promise<void> {
    return waitForDisconnect(this.reply);
  }

  get storesResponse(): boolean {
    return isResponseStored(this.reply);
  }

  reportIgnoredSearch(isIgnored: boolean): void {
    if (isIgnored) this.reply.header('x-web-search-ignored', 'true');
    else this.reply.removeHeader('x-web-search-ignored');
  }

  reserveMemory(bytes: number): Promise<void> {
    return this.bodies.reserveMemory(this.reply, bytes);
  }
}

/**
 * Implements Fastify's `onSend`: completes the headers. If possible, a recorded response is saved before it is sent.
 */
export function handleOnSend(
  _: unknown,
  reply: FastifyReply,
  payload: unknown,
  done: (error: null, payload: unknown) => void,
): void {
  completeHeaders(reply);
  const recording = recordings.get(reply);
  if (!recording) done(null, payload);
  else void recording.end(payload).then(() => done(null, payload));
}
