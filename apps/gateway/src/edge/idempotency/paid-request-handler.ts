import type { FastifyReply, FastifyRequest } from 'fastify';
import type {
  Caller,
  ClaimedRequest,
  ClientConnection,
  FreeModelLimits,
  IdempotencyService,
  IdempotentRequest,
  InvalidProofReason,
  Payer,
  PayerFactory,
  SavedHttpResponse,
  VerifiedProof,
} from '#application';
import type { Authenticator } from '../authentication/authenticator.ts';
import { BadRequestError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';
import { normalizePath, type PayPerRequestGate } from '../pay-per-request/pay-per-request-gate.ts';
import { attachRecording, HttpClientConnection, ResponseRecording } from '../responses/response-recording.ts';
import { Upload } from '../uploads/upload.ts';

const PRINTABLE = /^[\x20-\x7e]{1,255}$/;

/** The source of a request, as the query history shows it. */
export function getQuerySource({ headers }: FastifyRequest): 'ui' | 'api' {
  return headers['x-query-source'] === 'ui' ? 'ui' : 'api';
}

type Serve = (payer: Payer, audience: ClientConnection) => Promise<unknown>;

interface Serving {
  readonly serve: Serve;
  readonly recoverResponse?: NonNullable<IdempotentRequest['recoverResponse']>;
}

/** The one key of a payer that pays for one request. */
const PROOF = 'proof of payment';

export interface PaidRequestDependencies {
  readonly payers: Pick<PayerFactory, 'forCaller' | 'forChallenge'>;
  readonly idempotency: IdempotencyService;
  readonly authenticator: Authenticator;
  readonly freeUse: FreeModelLimits;
  readonly doors: PayPerRequestGate;
}

/** What all requests begin with that are paid for, or that create something: each is served once for its Idempotency-Key. */
export class PaidRequestHandler {
  private readonly recordings = new Set<Promise<void>>();

  constructor(private readonly ports: PaidRequestDependencies) {}

  /** Waits until every answer that has ended is kept. */
  async close(): Promise<void> {
    await Promise.all(this.recordings);
  }

  /**
   * Serves a request that is known to be well-formed: once, where it has an Idempotency-Key, and with the answer of then
   * from then on. Without a caller it is paid for by the request. It is served under `request.id`. What goes on without its
   * gateway is not lost with its answer: `recoverResponse` says it.
   * @throws IdempotencyConflictError when the key is another request's, or its request runs, or its answer is lost
   */
  async once(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | undefined,
    serving: Serve | Serving,
  ): Promise<void> {
    const job = typeof serving === 'function' ? { serve: serving } : serving;
    if (caller === undefined) return this.visited(reply, job);
    const payer = this.ports.payers.forCaller(caller);
    const key = request.headers['idempotency-key'];
    const claimed = () =>
      this.ports.idempotency.claim({ ...this.keyedBy(String(key), request, payer.id), ...job }, payer);
    await this.serve(reply, key === undefined ? { payer } : await claimed(), job);
  }

  /**
   * Serves a request that comes without an account: what it is paid with is its key, so it is served once. Where it is not
   * paid for, a payment is asked for, and nothing else is done.
   */
  private async visited(reply: FastifyReply, job: Serving): Promise<void> {
    const { visitor } = reply.request;
    if (visitor === undefined) throw new Error('a request was let in without a payer');
    const quote = (payer: Payer) => working(reply, () => job.serve(payer, new HttpClientConnection(reply)));
    if (!('proof' in visitor)) return this.ports.doors.ask(reply, visitor.why, quote);
    const fault = await this.paidFor(reply, visitor.proof, job);
    if (fault) await this.ports.doors.askAgain(reply, fault, quote);
  }

  /** @returns why it is not served: the proof is right, and does not pay for this */
  private async paidFor(
    reply: FastifyReply,
    { challengeId, issued }: VerifiedProof,
    job: Serving,
  ): Promise<InvalidProofReason | undefined> {
    const { request } = reply;
    const digest = this.ports.doors.digestOf(request);
    if (digest !== issued.request) return 'other request';
    const proven = { challengeId, request: digest, priceList: issued.priceList };
    const payer = this.ports.payers.forChallenge(proven);
    const payerAgain = () => this.ports.payers.forChallenge(proven, true);
    const keyed = {
      payer: payer.id,
      key: PROOF,
      source: 'payment',
      fingerprint: digest,
      requestId: request.id,
    } as const;
    try {
      const served = await this.ports.idempotency.claim(
        { ...keyed, ...job, assertCredentialValid: async () => {}, createRetryPayer: payerAgain },
        payer,
      );
      await this.serve(reply, served, job);
      return undefined;
    } catch (error) {
      const fault = this.ports.doors.faultIn(error);
      if (fault === undefined) throw error;
      return fault;
    }
  }

  private async serve(
    reply: FastifyReply,
    served: ClaimedRequest | SavedHttpResponse | Pick<ClaimedRequest, 'payer'>,
    job: Serving,
  ): Promise<void> {
    if ('status' in served) return replay(served, reply);
    if ('complete' in served) this.record(reply, served.complete);
    reply.header('x-generation-id', `gen-${reply.request.id}`);
    const payer = this.ports.freeUse.wrapPayer(served.payer, () => toNetwork(reply.request.ip));
    await working(reply, () => job.serve(payer, new HttpClientConnection(reply)));
  }

  /**
   * Creates something that costs nothing, once for the request's Idempotency-Key: what it answers is the answer of
   * then from then on. It is for an account that exists, which the caller has shown to be his.
   * @throws IdempotencyConflictError when the key is another request's, or its request runs
   */
  async creation(request: FastifyRequest, reply: FastifyReply, create: () => Promise<unknown>): Promise<unknown> {
    const key = String(request.headers['idempotency-key']);
    const served = await this.ports.idempotency.claimCreation(
      this.keyed(key, request, this.ports.payers.forCaller(request.caller).id),
    );
    if ('status' in served) {
      reply.header('idempotent-replayed', 'true');
      return JSON.parse(served.body.toString());
    }
    this.record(reply, served.complete);
    return create();
  }

  private keyedBy(key: string, request: FastifyRequest, payer: string): IdempotentRequest {
    return {
      ...this.keyed(key, request, payer),
      assertCredentialValid: () => this.ports.authenticator.mayRead(request),
    };
  }

  private keyed(key: string, { id: requestId, url, body }: FastifyRequest, payer: string): IdempotentRequest {
    if (!PRINTABLE.test(key)) {
      throw new BadRequestError('Idempotency-Key must be 1 to 255 printable ASCII characters', 'Idempotency-Key');
    }
    const about = `${normalizePath(url)}\n${JSON.stringify(body)}`;
    // Who creates something has just shown a credential that is good.
    const mayRead = async () => {};
    return { payer, key, source: 'Idempotency-Key', fingerprint: about, requestId, assertCredentialValid: mayRead };
  }

  private record(reply: FastifyReply, ended: (answer: SavedHttpResponse | undefined) => Promise<void>): void {
    const recording = new ResponseRecording(reply, (answer) => {
      const kept = ended(answer).finally(() => this.recordings.delete(kept));
      this.recordings.add(kept);
      return kept;
    });
    attachRecording(reply, recording);
  }
}

/** The files of an upload stay for as long as there is work with them. */
function working<T>({ request: { body } }: FastifyReply, work: () => Promise<T>): Promise<T> {
  return body instanceof Upload ? body.during(work) : work();
}

function replay({ status, headers, body }: SavedHttpResponse, reply: FastifyReply): void {
  reply.headers({ ...headers, 'idempotent-replayed': 'true' });
  reply.status(status).send(body);
}
