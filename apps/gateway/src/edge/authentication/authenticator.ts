/**
 * The caller, or the visitor, is found before the body of a request is read, and says how much of it is. A guard of Nest's comes
 * too late for that, and a hook of the whole instance would answer without CORS headers, which no browser shows to its page.
 */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { type Caller, type Clock, type RateLimiter, type Secrets, toAccountIds, toActor } from '#application';
import { type Cause, createRootCause } from '#kernel';
import { findKeyOwner } from '#projections';
import type { OperationOptions } from '../../openapi/operation.ts';
import { BadRequestError, UnauthorizedError } from '../errors/errors.ts';
import type { CredentialLookups } from '../limits/credential-lookups.ts';
import { enforceActionLimit } from '../limits/rate-limited-actions.ts';
import type { PayPerRequestGate } from '../pay-per-request/pay-per-request-gate.ts';
import type { ReadModelReader } from '../reading/read-model-reader.ts';
import { getMaxUploadBytes } from '../uploads/multipart.ts';

/** Images and files come inside the JSON. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;
/** Limit of a body that is not paid for. */
const MAX_SETTINGS_BYTES = 64 * 1024;
/** Limits of the body of a visitor's request, without files and with: what he is to pay is found by it before he has. */
export const MAX_ANONYMOUS_BODY_BYTES = 64 * 1024;
export const MAX_ANONYMOUS_UPLOAD_BYTES = 26 * 1024 * 1024;
/** Limit of a web hook. */
const MAX_HOOK_BYTES = 256 * 1024;
/** Limit of a body that must be read to find the account, or that needs no account. */
const MAX_UNKNOWN_BYTES = 4 * 1024;

const REMEMBERED_KEYS = 100_000;
/** Longer credentials were not issued here and are not looked up. */
const MAX_CREDENTIAL = 512;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const INVALID_KEY = 'The API key was not found or has been revoked';
const INVALID_ACCOUNT = 'The credit id is not valid';
const NO_PAYER = 'Models are paid for with an API key, not with x-credit-id: send "Authorization: Bearer <API key>"';

/** The actor of a request that needs no credential. */
const ANYBODY = 'anybody';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of an operation that is not public, unless a visitor asks. */
    caller: Caller;
  }
  interface FastifyContextConfig {
    operation?: OperationOptions;
  }
}

/** Hands the caller that was found to a controller. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return context.switchToHttp().getRequest<FastifyRequest>().caller;
});

/** Hands a controller what the facts of its request say about their cause. */
export const RequestCause = createParamDecorator((_: unknown, context: ExecutionContext): Cause => {
  const { caller, id } = context.switchToHttp().getRequest<FastifyRequest>();
  return createRootCause(caller ? toActor(caller) : ANYBODY, id);
});

/**
 * Adds a hook to every route that is declared from now on: it finds the caller as the operation says, counts what is given
 * for nothing, and limits the body.
 */
export function registerAuthentication(
  fastify: FastifyInstance,
  authenticator: Authenticator,
  doors: PayPerRequestGate,
  limits: RateLimiter,
): void {
  fastify.decorateRequest('caller', undefined as unknown as Caller);
  fastify.decorateRequest('visitor', undefined);
  fastify.addHook('onRoute', (route) => {
    const operation = route.config?.operation;
    if (!operation) return;
    route.bodyLimit = bodyLimitOf(operation);
    const find = finderOf(operation, authenticator);
    if (!find && !operation.proof && !operation.gives) return;
    const hook = async (request: FastifyRequest) => {
      if (operation.challenge) request.visitor = await doors.visitor(request);
      if (operation.proof) request.visitor = await doors.prover(request);
      if (request.visitor) return;
      const caller = await find?.(request);
      if (caller) request.caller = caller;
      if (operation.gives) await enforceActionLimit(limits, operation.gives, request);
    };
    if (operation.payer === 'body') route.preHandler = [route.preHandler ?? [], hook].flat();
    else route.preParsing = [route.preParsing ?? [], hook].flat();
  });
}

function bodyLimitOf({ auth, paid, payer, largeBody, raw, upload, maxBytes }: OperationOptions): number {
  if (maxBytes !== undefined) return maxBytes;
  if (upload) return getMaxUploadBytes(upload);
  if (raw) return MAX_HOOK_BYTES;
  if (auth === 'public' || auth === 'optional' || payer === 'body') return MAX_UNKNOWN_BYTES;
  return paid || largeBody ? MAX_BODY_BYTES : MAX_SETTINGS_BYTES;
}

function finderOf(operation: OperationOptions, authenticator: Authenticator) {
  const { auth, paid, payer } = operation;
  const missing = missingFor(operation);
  const creditId = ({ body, query }: FastifyRequest) =>
    payer === undefined ? undefined : ((payer === 'body' ? body : query) as Fields)?.credit_id;
  switch (auth) {
    case 'public':
      return undefined;
    case 'optional':
      return (request: FastifyRequest) => authenticator.readerIfAny(request);
    case 'account':
      return (request: FastifyRequest) => authenticator.owner(request, missing);
    default:
      return paid
        ? (request: FastifyRequest) => authenticator.payer(request, missing)
        : (request: FastifyRequest) => authenticator.reader(request, missing, creditId(request));
  }
}

type Fields = { readonly credit_id?: unknown } | undefined;

/** What to say to who sends no credential: which ones are taken here. */
function missingFor({ auth, paid, payer }: OperationOptions): string {
  const key = '"Authorization: Bearer <API key>" or x-api-key';
  if (auth === 'account') return 'A credential is missing: send the id of the account as x-credit-id';
  if (paid) return `A credential is missing: send ${key}`;
  const field = payer === undefined ? '' : `, or credit_id in the ${payer}`;
  return `A credential is missing: send ${key}, or the id of the account as x-credit-id${field}`;
}

export interface AuthenticatorDependencies {
  readonly books: ReadModelReader;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly lookUps: CredentialLookups;
}

/**
 * Finds the caller. The owner of a key never changes, so it is remembered; whether it may still be used is decided on the
 * account's stream with every hold, and looked up for reads.
 */
export class Authenticator {
  /** By the hash of a key, or of the `credit_id`. Grows as it fills: with a `max`, all its room would be made at the start. */
  private readonly owners = new LRUCache<string, Caller>({ maxSize: REMEMBERED_KEYS, sizeCalculation: () => 1 });

  constructor(
    private readonly ports: AuthenticatorDependencies,
    private readonly creditIdMayPay: boolean,
  ) {}

  /**
   * Returns the payer. Whether it may spend is decided by the hold. The id of the account would pass every cap of its keys,
   * so it pays only where that is allowed; beside a key it must be that of its account, and the key pays.
   */
  async payer(request: FastifyRequest, missing: string): Promise<Caller> {
    const apiKey = apiKeyOf(request);
    if (apiKey === undefined) {
      if (!this.creditIdMayPay) throw new UnauthorizedError(request.headers['x-credit-id'] ? NO_PAYER : missing);
      return this.owner(request, missing);
    }
    const caller = this.owners.get(this.ports.secrets.hash(apiKey)) ?? (await this.verify(request, apiKey));
    const named = request.headers['x-credit-id'];
    if (named !== undefined && !this.isAccountOf(caller, named)) throw notItsAccount('x-credit-id');
    return caller;
  }

  /** Remembers the owner of a key that was made here, which is found before the read models show it. */
  remember(apiKey: string, caller: Caller): void {
    this.owners.set(this.ports.secrets.hash(apiKey), caller);
  }

  /** Returns the reader of what is public: undefined without a credential. @throws UnauthorizedError when it is wrong */
  async readerIfAny(request: FastifyRequest): Promise<Caller | undefined> {
    const anonymous = apiKeyOf(request) === undefined && request.headers['x-credit-id'] === undefined;
    return anonymous ? undefined : this.reader(request, INVALID_KEY);
  }

  /**
   * Returns the reader: by an active key, or by the account's id in a header or at `creditId`. Who names the account beside
   * a key of it is the account.
   * @throws BadRequestError when the key is another account's
   */
  async reader(request: FastifyRequest, missing: string, creditId?: unknown): Promise<Caller> {
    const apiKey = apiKeyOf(request);
    if (apiKey === undefined) return this.owner(request, missing, creditId);
    const caller = await this.verify(request, apiKey);
    const field = (creditId ?? undefined) === undefined ? 'x-credit-id' : 'credit_id';
    const named = creditId ?? request.headers['x-credit-id'];
    if (named === undefined) return caller;
    if (this.isAccountOf(caller, named)) return { ...caller, keyId: null };
    throw notItsAccount(field);
  }

  /** @throws UnauthorizedError when the credential of a payer is not good any more */
  async mayRead(request: FastifyRequest): Promise<void> {
    const apiKey = apiKeyOf(request);
    if (apiKey === undefined) await this.owner(request, INVALID_ACCOUNT);
    else await this.verify(request, apiKey);
  }

  /** The account itself, by its `credit_id`. */
  async owner(request: FastifyRequest, missing: string, creditId?: unknown): Promise<Caller> {
    const ids = toAccountIds(claimedCreditId(request, missing, creditId), this.ports.secrets);
    const known = this.owners.get(ids[0]);
    if (known) return known;
    const account = await this.ports.lookUps.make(request.ip, false, () => this.accountOf(ids));
    this.owners.set(ids[0], account);
    return account;
  }

  private async accountOf(ids: readonly string[]): Promise<Caller> {
    for (const accountId of ids) if (await this.ports.books.knows(accountId)) return { accountId, keyId: null };
    throw new UnauthorizedError(INVALID_ACCOUNT);
  }

  private isAccountOf({ accountId }: Caller, named: unknown): boolean {
    if (typeof named !== 'string' || !UUID.test(named)) return false;
    return toAccountIds(named.toLowerCase(), this.ports.secrets).includes(accountId);
  }

  /** The id of an account's key, by its secret; undefined when the account has no such key. @throws ReadModelLaggingError, ReadModelIncompleteError */
  async keyOf(account: string, apiKey: string): Promise<string | undefined> {
    const owner = await this.ports.books.ownerOf(this.ports.secrets.hashWithAllKeys(apiKey));
    return owner?.accountId === account ? owner.keyId : undefined;
  }

  private async verify({ ip }: FastifyRequest, apiKey: string): Promise<Caller> {
    const hash = this.ports.secrets.hash(apiKey);
    const known = this.owners.has(hash);
    const caller = await this.ports.lookUps.make(ip, known, (withinMs) => this.ownerOf(apiKey, hash, withinMs));
    if (!known) this.owners.set(hash, caller);
    return caller;
  }

  /** A key that is known here exists, whether or not the read model shows it yet. */
  private async ownerOf(apiKey: string, hash: string, withinMs: number): Promise<Caller> {
    const { books, secrets } = this.ports;
    const hashes = secrets.hashWithAllKeys(apiKey);
    const known = this.owners.get(hash);
    const owner = await (known ? findKeyOwner(books.pool, hashes) : books.ownerOf(hashes, withinMs));
    if (!owner && known) return known;
    if (!owner || owner.revoked) throw new UnauthorizedError(INVALID_KEY);
    if (owner.expireAt !== null && owner.expireAt <= this.ports.clock.now())
      throw new UnauthorizedError('The API key has expired');
    return { accountId: owner.accountId, keyId: owner.keyId };
  }
}

function notItsAccount(field: string): BadRequestError {
  return new BadRequestError(`${field} is not the account of the API key`, field);
}

/** Whether a request carries a key, good or not. */
export function hasApiKey(request: FastifyRequest): boolean {
  return apiKeyOf(request) !== undefined;
}

/** The key that a request carries, in any of the headers that clients use. */
function apiKeyOf({ headers }: FastifyRequest): string | undefined {
  const { authorization: sent = '' } = headers; // some clients send it empty beside another header
  if (sent.length > MAX_CREDENTIAL) throw new UnauthorizedError(INVALID_KEY);
  const authorization = /^Bearer\s*$/i.test(sent) ? '' : sent;
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
  if (authorization !== '' && bearer === undefined) {
    throw new UnauthorizedError('Authorization must have the form "Bearer <API key>"');
  }
  const header = headers['x-api-key'] ?? headers['api-key'];
  if (typeof header === 'string' && header.length > MAX_CREDENTIAL) throw new UnauthorizedError(INVALID_KEY);
  return bearer ?? (typeof header === 'string' ? header : undefined);
}

/** The `credit_id` that a request names, which need not be that of any account. */
function claimedCreditId({ headers }: FastifyRequest, missing: string, creditId?: unknown): string {
  const claimed = creditId ?? headers['x-credit-id'];
  if (claimed === undefined) throw new UnauthorizedError(missing);
  if (typeof claimed !== 'string' || !UUID.test(claimed)) throw new UnauthorizedError(INVALID_ACCOUNT);
  return claimed.toLowerCase();
}
