import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Audience, Caller, FreeUse, Idempotency, KeptAnswer, KeyedRequest, Payer, Payers } from '#application';
import type { Authenticator } from './caller.ts';
import { InvalidRequest } from './errors.ts';
import { Recording, record, WholeAudience } from './recording.ts';
import { Upload } from './uploads/upload.ts';

const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** The source of a request, as the query history shows it. */
export function sourceOf({ headers }: FastifyRequest): 'ui' | 'api' {
  return headers['x-query-source'] === 'ui' ? 'ui' : 'api';
}

type Serve = (payer: Payer, audience: Audience) => Promise<unknown>;

/** What all requests begin with that are paid for, or that create something: each is served once for its Idempotency-Key. */
export class PaidRequests {
  private readonly recordings = new Set<Promise<void>>();

  constructor(
    private readonly payers: Pick<Payers, 'of'>,
    private readonly idempotency: Idempotency,
    private readonly authenticator: Authenticator,
    private readonly freeUse: FreeUse,
  ) {}

  /** Waits until every answer that has ended is kept. */
  async close(): Promise<void> {
    await Promise.all(this.recordings);
  }

  /**
   * Serves a request that is known to be well-formed: once, where it has an Idempotency-Key, and with the answer of then
   * from then on. It is served under `request.id`. What goes on without its gateway is not lost with its answer: `leftBy` says it.
   * @throws IdempotencyConflict when the key is another request's, or its request runs, or its answer is lost
   */
  async once(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller,
    serving: Serve | { readonly serve: Serve; readonly leftBy: NonNullable<KeyedRequest['leftBy']> },
  ): Promise<void> {
    const payer = this.payers.of(caller);
    const key = request.headers['idempotency-key'];
    const job = typeof serving === 'function' ? { serve: serving } : serving;
    const claimed = () => this.idempotency.claim({ ...this.keyedBy(String(key), request, caller), ...job }, payer);
    const served = key === undefined ? { payer } : await claimed();
    if ('status' in served) return replay(served, reply);
    if ('ended' in served) this.record(reply, served.ended);
    reply.header('x-generation-id', `gen-${request.id}`);
    const answering = () => job.serve(this.freeUse.payerOf(served.payer), new WholeAudience(reply));
    await (request.body instanceof Upload ? request.body.during(answering) : answering());
  }

  /**
   * Creates something that costs nothing, once for the request's Idempotency-Key: what it answers is the answer of
   * then from then on. It is for an account that exists, which the caller has shown to be his.
   * @throws IdempotencyConflict when the key is another request's, or its request runs
   */
  async creation(request: FastifyRequest, reply: FastifyReply, create: () => Promise<unknown>): Promise<unknown> {
    const key = String(request.headers['idempotency-key']);
    const served = await this.idempotency.claimCreation(this.keyed(key, request, request.caller));
    if ('status' in served) {
      reply.header('idempotent-replayed', 'true');
      return JSON.parse(served.body.toString());
    }
    this.record(reply, served.ended);
    return create();
  }

  private keyedBy(key: string, request: FastifyRequest, caller: Caller): KeyedRequest {
    return { ...this.keyed(key, request, caller), mayRead: () => this.authenticator.mayRead(request) };
  }

  private keyed(key: string, request: FastifyRequest, caller: Caller) {
    if (!PRINTABLE.test(key)) {
      throw new InvalidRequest('Idempotency-Key must be 1 to 255 printable ASCII characters', 'Idempotency-Key');
    }
    const { id: requestId, url, body } = request;
    // All paths of an endpoint are one.
    const path = url.replace(/^\/v1(?=\/)/, '').replace(/\/(?=\?|$)/, '');
    const about = `${path}\n${JSON.stringify(body)}`;
    // Who creates something has just shown a credential that is good.
    const mayRead = async () => {};
    return { caller, key, about, requestId, mayRead };
  }

  private record(reply: FastifyReply, ended: (answer: KeptAnswer | undefined) => Promise<void>): void {
    const recording = new Recording(reply, (answer) => {
      const kept = ended(answer).finally(() => this.recordings.delete(kept));
      this.recordings.add(kept);
      return kept;
    });
    record(reply, recording);
  }
}

function replay({ status, headers, body }: KeptAnswer, reply: FastifyReply): void {
  reply.headers({ ...headers, 'idempotent-replayed': 'true' });
  reply.status(status).send(body);
}
