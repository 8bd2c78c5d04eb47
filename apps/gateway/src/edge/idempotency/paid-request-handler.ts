import type { FastifyReply, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import {
  type Caller,
  type CatalogueService,
  type ChatConnection,
  type ClaimContent,
  type ClaimedRequest,
  DedupingPayer,
  type FreeModelLimits,
  type IdempotencyService,
  type IdempotentRequest,
  type InvalidProofReason,
  InvalidRequestError,
  type Payer,
  type PayerFactory,
  RepeatedRequestError,
  requestsZdr,
  type SavedHttpResponse,
  serializeJson,
  type VerifiedProof,
} from '#application';
import type { Catalogue } from '#catalogue';
import { type Query, toChallengePayment } from '#domain';
import { interruptAfter } from '#foundation';
import { isJsonObject, limitEntries, type Runtime } from '#kernel';
import type { Authenticator } from '../authentication/authenticator.ts';
import { BadRequestError } from '../errors/errors.ts';
import { toNetwork } from '../network/client-addresses.ts';
import { normalizePath, type PayPerRequestGate } from '../pay-per-request/pay-per-request-gate.ts';
import { completeHeaders } from '../responses/response-headers.ts';
import { attachRecording, HttpClientConnection, ResponseRecording } from '../responses/response-recording.ts';
import type { RetirementNotices } from '../responses/retirement-notices.ts';
import { Upload } from '../uploads/upload.ts';
import type { BodyParser } from '../validation/body-parser.ts';

const MAX_KNOWN_SETTINGS = 100_000;
const IDEMPOTENCY_KEY_PATTERN = /^[\x20-\x7e]{1,255}$/;

/** Returns the source that the query history records for a request. */
export function getQuerySource({ headers }: FastifyRequest): 'ui' | 'api' {
  return headers['x-query-source'] === 'ui' ? 'ui' : 'api';
}

type Serve = (payer: Payer, connection: ChatConnection) => Promise<unknown>;

interface PaidOperation {
  readonly serve: Serve;
  readonly recoverResponse?: NonNullable<IdempotentRequest['recoverResponse']>;
  /** Whether `dedupe_seconds` of the API key applies; true by default. */
  readonly isRepeatable?: boolean;
}

/**
 * A proof pays for one request, so its payer needs only one idempotency key. With another text, repeats would not find
 * the responses that were saved under this one.
 */
const PROOF_IDEMPOTENCY_KEY = 'proof of payment';

export interface PaidRequestDependencies {
  readonly payers: Pick<PayerFactory, 'forCaller' | 'forChallenge'>;
  readonly idempotency: IdempotencyService;
  readonly authenticator: Authenticator;
  readonly freeModelLimits: FreeModelLimits;
  readonly gate: PayPerRequestGate;
  readonly retirementNotices: RetirementNotices;
  readonly catalogues: Pick<CatalogueService, 'current'>;
  readonly bodies: BodyParser;
  readonly runtime: Pick<Runtime, 'sleep' | 'chance'>;
}

/**
 * Serves paid requests, and creations with an Idempotency-Key. A request with such a key is charged at most once, and
 * repeats get its response if it was saved.
 */
export class PaidRequestHandler {
  /** Responses that are being saved, and claims that are being freed. */
  private readonly recordings = new Set<Promise<void>>();
  /** By the id of an API key. Keys without the setting, of which there are far more, have no entry. */
  private readonly dedupeSeconds = new LRUCache<string, number>(limitEntries(MAX_KNOWN_SETTINGS));

  constructor(private readonly dependencies: PaidRequestDependencies) {}

  /** Waits until every response that had ended before the call is saved. */
  async close(): Promise<void> {
    await Promise.all(this.recordings);
  }

  /**
   * Serves a validated request, whose hold has the id `request.id`. If a caller repeats it with the same
   * Idempotency-Key, the repeat gets the saved response, or is served again if the request was not charged. Without a
   * caller the key is ignored: the request is paid for by its proof, or gets a challenge.
   * @throws BadRequestError for a malformed key or a `Last-Event-ID`; errors of `IdempotencyService.claim` and of the
   * operation; without a caller also errors of `PayPerRequestGate.requirePayment` and `requireAnotherPayment`
   */
  async serveOnce(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller | undefined,
    serveOrOperation: Serve | PaidOperation,
  ): Promise<void> {
    const operation = typeof serveOrOperation === 'function' ? { serve: serveOrOperation } : serveOrOperation;
    if (request.headers['last-event-id'] !== undefined) throw createResumptionError();
    if (caller === undefined) return this.serveAnonymous(reply, operation);
    const payer = this.dependencies.payers.forCaller(caller);
    const key = request.headers['idempotency-key'];
    if (key === undefined) return this.serveWithoutKey(reply, { payer, caller }, operation);
    const keyed = { ...(await this.createPaidIdempotentRequest(String(key), request, payer.id)), ...operation };
    await this.serve(reply, await this.dependencies.idempotency.claim(keyed, payer), operation);
  }

  /** Serves a request by its content: with `dedupe_seconds` of its API key, a repeat gets the response of the first. */
  private async serveWithoutKey(
    reply: FastifyReply,
    { payer, caller: { keyId } }: { readonly payer: Payer; readonly caller: Caller },
    operation: PaidOperation,
  ): Promise<void> {
    if (keyId === null || operation.isRepeatable === false) return this.serve(reply, { payer }, operation);
    const { dedupeSeconds } = this;
    const setting = {
      get: () => dedupeSeconds.get(keyId) ?? null,
      set: (seconds: number | null) =>
        void (seconds === null ? dedupeSeconds.delete(keyId) : dedupeSeconds.set(keyId, seconds)),
    };
    const dedupingPayer = new DedupingPayer(
      payer,
      setting,
      this.createContentClaim(reply, keyId, operation),
      this.dependencies.runtime,
    );
    try {
      await this.serve(reply, { payer: dedupingPayer }, operation);
    } catch (error) {
      if (!(error instanceof RepeatedRequestError)) throw error;
      const { response } = error;
      if (response.isIncomplete) void this.track(response.markDelivered());
      else this.observeDelivery(reply, response);
      sendSavedResponse(response, reply);
    }
  }

  /** The claim ends when its response has been delivered, or is interrupted while the client is still there. */
  private createContentClaim(reply: FastifyReply, keyId: string, operation: PaidOperation): ClaimContent {
    const { request } = reply;
    return async (held, claim, payer) => {
      assertStorable(request, held.query, this.dependencies.catalogues.current);
      await this.close(); // a response that this gateway has delivered is not repeated
      const keyed = await this.createPaidIdempotentRequest(`${request.method} ${keyId}`, request, payer.id);
      const claimed = await this.dependencies.idempotency.claim(
        { ...keyed, ...operation, ...claim, source: 'content' },
        payer,
      );
      if ('payer' in claimed) {
        this.observeDelivery(reply, claimed);
        this.startRecording(reply, (response) =>
          response?.isIncomplete && !reply.raw.destroyed ? claimed.markDelivered() : claimed.complete(response),
        );
      }
      return claimed;
    };
  }

  private observeDelivery({ raw }: FastifyReply, { markDelivered }: Pick<ClaimedRequest, 'markDelivered'>): void {
    raw.once('finish', () => void this.track(markDelivered()));
  }

  private track(saving: Promise<void>): Promise<void> {
    const tracked = saving.finally(() => this.recordings.delete(tracked));
    this.recordings.add(tracked);
    return tracked;
  }

  /**
   * Serves an anonymous request that its proof pays for; any other gets a challenge. A repeat gets the response if it
   * was saved.
   */
  private async serveAnonymous(reply: FastifyReply, operation: PaidOperation): Promise<void> {
    const { anonymousCaller } = reply.request;
    if (anonymousCaller === undefined) throw new Error('request.anonymousCaller is not set');
    const quote = (payer: Payer) => this.runOperation(reply, payer, operation);
    if (!('proof' in anonymousCaller))
      return this.dependencies.gate.requirePayment(reply, anonymousCaller.reason, quote);
    const proofError = await this.serveIfPaid(reply, anonymousCaller.proof, operation);
    if (proofError) await this.dependencies.gate.requireAnotherPayment(reply, proofError, quote);
  }

  /** @returns undefined if the request was served, else why the valid proof does not pay for this request */
  private async serveIfPaid(
    reply: FastifyReply,
    { challengeId, issued }: VerifiedProof,
    operation: PaidOperation,
  ): Promise<InvalidProofReason | undefined> {
    const { request } = reply;
    const digest = this.dependencies.gate.digestRequest(request);
    if (digest !== issued.request) return 'other_request';
    const { priceList } = issued;
    const paidChallenge = { challengeId, payment: toChallengePayment(issued), request: digest, priceList };
    const payer = this.dependencies.payers.forChallenge(paidChallenge);
    const createRetryPayer = () => this.dependencies.payers.forChallenge(paidChallenge, true);
    const keyed = {
      payer: payer.id,
      key: PROOF_IDEMPOTENCY_KEY,
      source: 'payment',
      fingerprint: digest,
      requestId: request.id,
    } as const;
    try {
      const claimed = await this.dependencies.idempotency.claim(
        { ...keyed, ...operation, assertCredentialValid: async () => {}, createRetryPayer },
        payer,
      );
      await this.serve(reply, claimed, operation);
      return undefined;
    } catch (error) {
      const proofError = this.dependencies.gate.toProofError(error);
      if (proofError === undefined) throw explainUnusedPayment(error);
      return proofError;
    }
  }

  private async serve(
    reply: FastifyReply,
    claimed: ClaimedRequest | SavedHttpResponse | Pick<ClaimedRequest, 'payer'>,
    operation: PaidOperation,
  ): Promise<void> {
    if ('status' in claimed) return sendSavedResponse(claimed, reply);
    if ('complete' in claimed) this.startRecording(reply, claimed.complete);
    reply.header('x-generation-id', `gen-${reply.request.id}`);
    const payer = this.dependencies.freeModelLimits.wrapPayer(claimed.payer, () => toNetwork(reply.request.ip));
    await this.runOperation(reply, payer, operation);
  }

  private runOperation(reply: FastifyReply, payer: Payer, { serve }: PaidOperation): Promise<unknown> {
    const notifyingPayer = this.dependencies.retirementNotices.wrapPayer(payer, reply);
    return runWithUpload(reply, () => serve(notifyingPayer, new HttpClientConnection(reply, this.dependencies.bodies)));
  }

  /**
   * Creates something for free. A repeat with the same Idempotency-Key gets the saved response; if the creation was
   * rejected, or the gateway died before the response was saved, the repeat creates again.
   * @param request has an Idempotency-Key, and a caller that was authenticated: its credential is not checked here
   * @throws BadRequestError for a malformed key; errors of `IdempotencyService.claimCreation` and of `create`
   */
  async createOnce(request: FastifyRequest, reply: FastifyReply, create: () => Promise<unknown>): Promise<unknown> {
    const key = String(request.headers['idempotency-key']);
    const claimed = await this.dependencies.idempotency.claimCreation(
      await this.createIdempotentRequest(key, request, this.dependencies.payers.forCaller(request.caller).id),
    );
    if ('status' in claimed) {
      reply.header('idempotent-replayed', 'true');
      return JSON.parse(claimed.body.toString());
    }
    this.startRecording(reply, claimed.complete);
    return create();
  }

  private async createPaidIdempotentRequest(
    key: string,
    request: FastifyRequest,
    payer: string,
  ): Promise<IdempotentRequest> {
    return {
      ...(await this.createIdempotentRequest(key, request, payer)),
      assertCredentialValid: () => this.dependencies.authenticator.assertCredentialValid(request),
    };
  }

  private async createIdempotentRequest(
    key: string,
    { id: requestId, url, body }: FastifyRequest,
    payer: string,
  ): Promise<IdempotentRequest> {
    if (!IDEMPOTENCY_KEY_PATTERN.test(key)) {
      throw new BadRequestError('Idempotency-Key must be 1 to 255 printable ASCII characters', 'Idempotency-Key');
    }
    const path = `${normalizePath(url)}\n`;
    // Stored hashes of requests without a body contain this text.
    const value = body instanceof Upload ? body.toJSON() : body;
    const json = value === undefined ? 'undefined' : await serializeJson(value);
    const fingerprint = typeof json === 'string' ? path + json : [Buffer.from(path), ...json];
    // Checks nothing: the caller of a creation has just been authenticated. `createPaidIdempotentRequest` replaces it.
    const assertCredentialValid = async () => {};
    return { payer, key, source: 'Idempotency-Key', fingerprint, requestId, assertCredentialValid };
  }

  private startRecording(
    reply: FastifyReply,
    complete: (response: SavedHttpResponse | undefined) => Promise<void>,
  ): void {
    attachRecording(reply, new ResponseRecording(reply, (response) => this.track(complete(response))));
  }
}

/**
 * With `dedupe_seconds`, the response is stored until it has been delivered.
 * @throws BadRequestError for a request of which nothing may be retained
 */
function assertStorable({ body }: FastifyRequest, query: Query, catalogue: Catalogue): void {
  const fields = body instanceof Upload ? body.fields : body;
  if (!requestsZdr(query, isJsonObject(fields) ? fields.provider : undefined, catalogue)) return;
  const message = 'Zero data retention (zdr) is not possible with this API key: its dedupe_seconds stores responses';
  throw new BadRequestError(message, 'provider.zdr');
}

/** Retains the files of an upload until `work` has ended. */
function runWithUpload<T>({ request: { body } }: FastifyReply, work: () => Promise<T>): Promise<T> {
  return body instanceof Upload ? body.retainWhile(work) : work();
}

/**
 * A client that reconnects as browsers do for `EventSource` sends an interrupted request again by itself,
 * and with this header: https://html.spec.whatwg.org/multipage/server-sent-events.html#the-last-event-id-header
 */
function createResumptionError(): BadRequestError {
  return new BadRequestError(
    'An interrupted stream cannot be resumed; send the request without Last-Event-ID to pay for another response',
    'Last-Event-ID',
  );
}

/** A request that was paid for before its model retired can never be served, so its payer learns what to do. */
function explainUnusedPayment(error: unknown): unknown {
  if (!(error instanceof InvalidRequestError) || error.status !== 410) return error;
  const advice = 'the payment was not used and is owed to you: save its proof and contact the operator';
  return new InvalidRequestError(410, `${error.message}; ${advice}`, error.param);
}

function sendSavedResponse({ status, headers, body, isIncomplete }: SavedHttpResponse, reply: FastifyReply): void {
  reply.headers({ ...headers, 'idempotent-replayed': 'true' });
  if (!isIncomplete) return void reply.status(status).send(body);
  reply.hijack();
  completeHeaders(reply);
  reply.raw.writeHead(status, reply.getHeaders() as Record<string, string>);
  interruptAfter(reply.raw, body);
}
