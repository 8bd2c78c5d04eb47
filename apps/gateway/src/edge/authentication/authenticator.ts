/**
 * Identifies the caller before the body is read, because the caller determines how large the body may be. Only a body
 * that may contain the credential is read first. A Nest guard runs too late. A hook of the Fastify instance would run
 * before the CORS plugin, and browsers would hide most headers of its responses.
 */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { type Caller, type Clock, type RateLimiter, type Secrets, toAccountIds, toActor } from '#application';
import { type Cause, createRootCause, limitEntries } from '#kernel';
import { findKeyOwner, type KeyOwner } from '#projections';
import type { OperationOptions } from '../../openapi/operation.ts';
import { BadRequestError, ForbiddenError, UnauthorizedError } from '../errors/errors.ts';
import type { CredentialLookups } from '../limits/credential-lookups.ts';
import { enforceActionLimit } from '../limits/rate-limited-actions.ts';
import type { PayPerRequestGate } from '../pay-per-request/pay-per-request-gate.ts';
import type { ReadModelReader } from '../reading/read-model-reader.ts';
import { getMaxUploadBytes } from '../uploads/multipart.ts';
import { getCreditIdHeader, INVALID_KEY, parseApiKey } from './credential-headers.ts';

/** Limit of the JSON body of a paid operation or one with `largeBody`, which may contain images and files. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;
/** Limit of the body of a free operation that requires a credential outside the body. */
const MAX_UNPAID_BODY_BYTES = 64 * 1024;
/** Limit of an anonymous request without files: its body is read to quote the price, before anything is paid. */
export const MAX_ANONYMOUS_BODY_BYTES = 64 * 1024;
/** Limit of an anonymous request with files. */
export const MAX_ANONYMOUS_UPLOAD_BYTES = 26 * 1024 * 1024;
const MAX_WEBHOOK_BYTES = 256 * 1024;
/** Limit of a body that may contain the credential, or whose operation requires none. */
const MAX_UNAUTHENTICATED_BODY_BYTES = 4 * 1024;

const MAX_CACHED_CALLERS = 100_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const INVALID_ACCOUNT = 'Invalid credit id';
const CREDIT_ID_CANNOT_PAY =
  'Paid requests require an API key, not x-credit-id: send "Authorization: Bearer <API key>"';

/** Actor of a request without `caller`. Stored in event metadata, so the value must not change. */
const ANONYMOUS_ACTOR = 'anybody';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of every operation that is not public, except for anonymous callers. */
    caller: Caller;
    /** What the API key of a free operation permits; null and undefined permit all models. */
    permittedModels: readonly string[] | null | undefined;
  }
  interface FastifyContextConfig {
    operation?: OperationOptions;
  }
}

/** Injects the authenticated caller into a controller method. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return context.switchToHttp().getRequest<FastifyRequest>().caller;
});

/** Injects the models that the API key of a free operation permits; null and undefined permit all models. */
export const PermittedModels = createParamDecorator((_: unknown, context: ExecutionContext) => {
  return context.switchToHttp().getRequest<FastifyRequest>().permittedModels;
});

/** Injects the cause that the events of this request record. */
export const RequestCause = createParamDecorator((_: unknown, context: ExecutionContext): Cause => {
  const { caller, id } = context.switchToHttp().getRequest<FastifyRequest>();
  return createRootCause(caller ? toActor(caller) : ANONYMOUS_ACTOR, id);
});

/**
 * Sets up each route that is declared after this call and has an operation: limits the body, identifies the caller as
 * the operation requires, and enforces the rate limits of free operations.
 */
export function registerAuthentication(
  fastify: FastifyInstance,
  authenticator: Authenticator,
  gate: PayPerRequestGate,
  limits: RateLimiter,
): void {
  fastify.decorateRequest('caller', undefined as unknown as Caller);
  fastify.decorateRequest('anonymousCaller', undefined);
  fastify.decorateRequest('permittedModels', undefined);
  fastify.addHook('onRoute', (route) => {
    const operation = route.config?.operation;
    if (!operation) return;
    route.bodyLimit = getBodyLimit(operation);
    const authenticate = selectAuthentication(operation, authenticator);
    if (!authenticate && !operation.acceptsProof && !operation.rateLimitedAction) return;
    const hook = async (request: FastifyRequest) => {
      if (operation.payPerRequest) request.anonymousCaller = await gate.identify(request);
      if (operation.acceptsProof) request.anonymousCaller = await gate.identifyByProof(request);
      if (request.anonymousCaller) return;
      const caller = await authenticate?.(request);
      if (caller) request.caller = caller;
      if (operation.rateLimitedAction) await enforceActionLimit(limits, operation.rateLimitedAction, request);
    };
    if (operation.creditIdLocation === 'body') route.preHandler = [route.preHandler ?? [], hook].flat();
    else route.preParsing = [route.preParsing ?? [], hook].flat();
  });
}

function getBodyLimit({
  auth,
  paid,
  creditIdLocation: payer,
  largeBody,
  raw,
  upload,
  maxBytes,
}: OperationOptions): number {
  if (maxBytes !== undefined) return maxBytes;
  if (upload) return getMaxUploadBytes(upload);
  if (raw) return MAX_WEBHOOK_BYTES;
  if (auth === 'public' || auth === 'optional' || payer === 'body') return MAX_UNAUTHENTICATED_BODY_BYTES;
  return paid || largeBody ? MAX_BODY_BYTES : MAX_UNPAID_BODY_BYTES;
}

function selectAuthentication(operation: OperationOptions, authenticator: Authenticator) {
  const { auth, paid, creditIdLocation: payer } = operation;
  const missingMessage = formatMissingCredential(operation);
  const getCreditId = ({ body, query }: FastifyRequest) =>
    payer === undefined ? undefined : ((payer === 'body' ? body : query) as Fields)?.credit_id;
  switch (auth) {
    case 'public':
      return undefined;
    case 'optional':
      return (request: FastifyRequest) => authenticator.authenticateOptionalReader(request);
    case 'account':
      return (request: FastifyRequest) => authenticator.authenticateOwner(request, missingMessage);
    default:
      return paid
        ? (request: FastifyRequest) => authenticator.authenticatePayer(request, missingMessage)
        : (request: FastifyRequest) => authenticator.authenticateReader(request, missingMessage, getCreditId(request));
  }
}

type Fields = { readonly credit_id?: unknown } | undefined;

/**
 * Returns the message for a missing credential, with the credentials to send. It omits the header api-key, and for paid
 * operations x-credit-id, which pays only if the operator allows this.
 */
function formatMissingCredential({ auth, paid, creditIdLocation: payer }: OperationOptions): string {
  const key = '"Authorization: Bearer <API key>" or x-api-key';
  if (auth === 'account') return 'Missing credential: send the credit id of the account as x-credit-id';
  if (paid) return `Missing credential: send ${key}`;
  const field = payer === undefined ? '' : `, or credit_id in the ${payer}`;
  return `Missing credential: send ${key}, or the credit id of the account as x-credit-id${field}`;
}

export interface AuthenticatorDependencies {
  readonly readModels: ReadModelReader;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly lookups: CredentialLookups;
}

/**
 * Authenticates requests. The owner of a key never changes, so it is cached. Whether the key may still be used is
 * decided on the account's stream with every hold, and looked up for every free operation.
 */
export class Authenticator {
  /** By the hash of the key or of the credit id. */
  private readonly callers = new LRUCache<string, Caller>(limitEntries(MAX_CACHED_CALLERS));

  constructor(
    private readonly dependencies: AuthenticatorDependencies,
    private readonly allowsCreditIdPayment: boolean,
  ) {}

  /**
   * Returns the caller of a paid operation; the hold decides whether the key may spend. A credit id bypasses the
   * limits of all keys, so it pays only if the operator allows this. If it is sent with a key, both must belong to the
   * same account, and the key pays.
   * @throws UnauthorizedError for a missing or invalid credential, or for a credit id alone if it may not pay;
   * BadRequestError if the credit id is not that of the key's account; errors of `CredentialLookups.run`
   */
  async authenticatePayer(request: FastifyRequest, missingMessage: string): Promise<Caller> {
    const apiKey = parseApiKey(request);
    if (apiKey === undefined) {
      if (!this.allowsCreditIdPayment)
        throw new UnauthorizedError(getCreditIdHeader(request) ? CREDIT_ID_CANNOT_PAY : missingMessage);
      return this.authenticateAccount(request, missingMessage);
    }
    const caller =
      this.callers.get(this.dependencies.secrets.hash(apiKey)) ?? (await this.verifyApiKey(request, apiKey));
    const claimedId = getCreditIdHeader(request);
    if (claimedId !== undefined && !this.isCallerAccount(caller, claimedId))
      throw createAccountMismatchError('x-credit-id');
    return caller;
  }

  /** Caches the owner of a key that this process created, so that the key works before the read models have it. */
  cacheCaller(apiKey: string, caller: Caller): void {
    this.callers.set(this.dependencies.secrets.hash(apiKey), caller);
  }

  /**
   * Returns the caller of an operation with optional authentication; undefined without a credential.
   * @throws UnauthorizedError for an invalid credential; ForbiddenError for a blocked key; BadRequestError if the
   * credit id is not that of the key's account; errors of `CredentialLookups.run`
   */
  async authenticateOptionalReader(request: FastifyRequest): Promise<Caller | undefined> {
    const isAnonymous = parseApiKey(request) === undefined && getCreditIdHeader(request) === undefined;
    return isAnonymous ? undefined : this.authenticateReader(request, INVALID_KEY);
  }

  /**
   * Returns the caller of a free operation: by an active key, or by the credit id in `creditId` or x-credit-id. With
   * both, the caller is the account itself and not the key.
   * @throws UnauthorizedError for a missing or invalid credential; ForbiddenError for a blocked key; BadRequestError if
   * the credit id is not that of the key's account; errors of `CredentialLookups.run`
   */
  async authenticateReader(request: FastifyRequest, missingMessage: string, creditId?: unknown): Promise<Caller> {
    const apiKey = parseApiKey(request);
    if (apiKey === undefined) return this.authenticateAccount(request, missingMessage, creditId);
    const caller = await this.verifyApiKey(request, apiKey);
    const field = (creditId ?? undefined) === undefined ? 'x-credit-id' : 'credit_id';
    const claimedId = creditId ?? getCreditIdHeader(request);
    if (claimedId === undefined) return caller;
    if (this.isCallerAccount(caller, claimedId)) {
      request.permittedModels = undefined;
      return { ...caller, keyId: null };
    }
    throw createAccountMismatchError(field);
  }

  /** @throws UnauthorizedError if the credential of a payer is no longer valid; errors of `CredentialLookups.run` */
  async assertCredentialValid(request: FastifyRequest): Promise<void> {
    const apiKey = parseApiKey(request);
    if (apiKey === undefined) await this.authenticateAccount(request, INVALID_ACCOUNT);
    else await this.verifyApiKey(request, apiKey);
  }

  /**
   * Returns the account itself as the caller, by its credit id.
   * @throws UnauthorizedError without a credit id, or for one that belongs to no account; errors of
   * `CredentialLookups.run`
   */
  async authenticateAccount(request: FastifyRequest, missingMessage: string, creditId?: unknown): Promise<Caller> {
    const ids = toAccountIds(parseClaimedCreditId(request, missingMessage, creditId), this.dependencies.secrets);
    const cachedCaller = this.callers.get(ids[0]);
    if (cachedCaller) return cachedCaller;
    const account = await this.dependencies.lookups.run(request.ip, false, () => this.resolveAccount(ids));
    this.callers.set(ids[0], account);
    return account;
  }

  /**
   * Returns the caller of an operation for the account itself. A key alone is not accepted: its limits do not bound
   * what these operations change. The credit id is enough, so a key that is unknown, expired, revoked or blocked is
   * ignored: the owner may be about to replace it.
   * @throws UnauthorizedError as `authenticateAccount`; BadRequestError if the key belongs to another account; errors
   * of `CredentialLookups.run`
   */
  async authenticateOwner(request: FastifyRequest, missingMessage: string): Promise<Caller> {
    const account = await this.authenticateAccount(request, missingMessage);
    const keyOwner = await this.findUsableKeyOwner(request);
    if (keyOwner && keyOwner.accountId !== account.accountId) throw createAccountMismatchError('x-credit-id');
    return account;
  }

  private async findUsableKeyOwner(request: FastifyRequest): Promise<Caller | undefined> {
    try {
      const apiKey = parseApiKey(request);
      return apiKey === undefined ? undefined : await this.verifyApiKey(request, apiKey);
    } catch (error) {
      if (error instanceof UnauthorizedError || error instanceof ForbiddenError) return undefined;
      throw error;
    }
  }

  private async resolveAccount(ids: readonly string[]): Promise<Caller> {
    for (const accountId of ids)
      if (await this.dependencies.readModels.hasAccount(accountId)) return { accountId, keyId: null };
    throw new UnauthorizedError(INVALID_ACCOUNT);
  }

  private isCallerAccount({ accountId }: Caller, creditId: unknown): boolean {
    if (typeof creditId !== 'string' || !UUID.test(creditId)) return false;
    return toAccountIds(creditId.toLowerCase(), this.dependencies.secrets).includes(accountId);
  }

  /**
   * Returns the id of an account's key by its secret; undefined if the account has no such key.
   * @throws ReadModelLaggingError, ReadModelIncompleteError if the read model may lack the key; StoreUnavailableError
   */
  async findKeyId(account: string, apiKey: string): Promise<string | undefined> {
    const owner = await this.dependencies.readModels.findKeyOwner(this.dependencies.secrets.hashWithAllKeys(apiKey));
    return owner?.accountId === account ? owner.keyId : undefined;
  }

  private async verifyApiKey(request: FastifyRequest, apiKey: string): Promise<Caller> {
    const hash = this.dependencies.secrets.hash(apiKey);
    const isCached = this.callers.has(hash);
    const { models, ...caller } = await this.dependencies.lookups.run(request.ip, isCached, (timeoutMs) =>
      this.loadKeyOwner(apiKey, hash, timeoutMs),
    );
    request.permittedModels = models;
    if (!isCached) this.callers.set(hash, caller);
    return caller;
  }

  /** A cached key exists, even if the read model does not have it yet. */
  private async loadKeyOwner(
    apiKey: string,
    hash: string,
    timeoutMs: number,
  ): Promise<Caller & Partial<Pick<KeyOwner, 'models'>>> {
    const { readModels, secrets } = this.dependencies;
    const hashes = secrets.hashWithAllKeys(apiKey);
    const cachedCaller = this.callers.get(hash);
    const owner = await (cachedCaller
      ? findKeyOwner(readModels.pool, hashes)
      : readModels.findKeyOwner(hashes, timeoutMs));
    if (!owner && cachedCaller) return cachedCaller;
    if (!owner || owner.revoked) throw new UnauthorizedError(INVALID_KEY);
    if (owner.expireAt !== null && owner.expireAt <= this.dependencies.clock.now())
      throw new UnauthorizedError('The API key has expired');
    if (owner.blocked) throw new ForbiddenError('The API key is blocked');
    return { accountId: owner.accountId, keyId: owner.keyId, models: owner.models };
  }
}

function createAccountMismatchError(field: string): BadRequestError {
  return new BadRequestError(`${field} does not belong to the account of the API key`, field);
}

/**
 * Returns the credit id that a request claims, in lower case. There may be no account with this credit id.
 * @throws UnauthorizedError if the credit id is missing or malformed
 */
function parseClaimedCreditId(request: FastifyRequest, missingMessage: string, creditId?: unknown): string {
  const claimed = creditId ?? getCreditIdHeader(request);
  if (claimed === undefined) throw new UnauthorizedError(missingMessage);
  if (typeof claimed !== 'string' || !UUID.test(claimed)) throw new UnauthorizedError(INVALID_ACCOUNT);
  return claimed.toLowerCase();
}
