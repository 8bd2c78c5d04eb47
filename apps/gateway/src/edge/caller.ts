/**
 * The caller is found before the body of a request is read: a stranger sends no body. A guard of Nest's comes
 * too late for that, and a hook of the whole instance would answer without CORS headers, which no browser shows to its page.
 */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { actorOf, type Caller, Clock, Secrets } from '#application';
import { type Cause, startedBy } from '#kernel';
import { findKey } from '#projections';
import type { OperationNotes } from '../openapi/operation.ts';
import type { BooksReader } from './books-reader.ts';
import { Unauthorized } from './errors.ts';

/** Images and files come inside the JSON. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;
/** Limit of a body that is not paid for. */
const MAX_SETTINGS_BYTES = 64 * 1024;
/** Limit of a body that must be read to find the account, or that needs no account. */
const MAX_UNKNOWN_BYTES = 4 * 1024;

const REMEMBERED_KEYS = 100_000;
/** Longer credentials were not issued here and are not looked up. */
const MAX_CREDENTIAL = 512;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const INVALID_KEY = 'The API key was not found or has been revoked';
const INVALID_ACCOUNT = 'The credit id is not valid';

/** The actor of a request that needs no credential. */
const ANYBODY = 'anybody';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of an operation that is not public. */
    caller: Caller;
  }
  interface FastifyContextConfig {
    operation?: OperationNotes;
  }
}

/** Hands the caller that was found to a controller. */
export const Authenticated = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return context.switchToHttp().getRequest<FastifyRequest>().caller;
});

/** Hands a controller what the facts of its request say about their cause. */
export const CausedBy = createParamDecorator((_: unknown, context: ExecutionContext): Cause => {
  const { caller, id } = context.switchToHttp().getRequest<FastifyRequest>();
  return startedBy(caller ? actorOf(caller) : ANYBODY, id);
});

/** Adds a hook to every route that is declared from now on: it finds the caller as the operation says, and limits the body. */
export function findCallers(fastify: FastifyInstance, authenticator: Authenticator): void {
  fastify.decorateRequest('caller', null as unknown as Caller);
  fastify.addHook('onRoute', (route) => {
    const operation = route.config?.operation;
    if (!operation) return;
    route.bodyLimit = bodyLimitOf(operation);
    const find = finderOf(operation, authenticator);
    if (!find) return;
    const hook = async (request: FastifyRequest) => {
      const caller = await find(request);
      if (caller) request.caller = caller;
    };
    if (operation.payer === 'body') route.preHandler = [route.preHandler ?? [], hook].flat();
    else route.preParsing = [route.preParsing ?? [], hook].flat();
  });
}

function bodyLimitOf({ auth, paid, payer, largeBody }: OperationNotes): number {
  if (auth === 'public' || auth === 'optional' || payer === 'body') return MAX_UNKNOWN_BYTES;
  return paid || largeBody ? MAX_BODY_BYTES : MAX_SETTINGS_BYTES;
}

function finderOf({ auth, paid, payer }: OperationNotes, authenticator: Authenticator) {
  if (auth === 'public') return undefined;
  if (auth === 'optional') return (request: FastifyRequest) => authenticator.visitor(request);
  if (paid) return (request: FastifyRequest) => authenticator.payer(request);
  const creditId = ({ body, query }: FastifyRequest) =>
    payer === undefined ? undefined : ((payer === 'body' ? body : query) as Fields)?.credit_id;
  if (auth === 'key') return (request: FastifyRequest) => authenticator.reader(request, creditId(request));
  return async (request: FastifyRequest): Promise<Caller> => ({
    accountId: await authenticator.accountOf(request, creditId(request)),
    keyId: null,
  });
}

type Fields = { readonly credit_id?: unknown } | undefined;

/**
 * Finds the caller. The owner of a key never changes, so it is remembered; whether it may still be used is decided on the
 * account's stream with every hold, and looked up for reads.
 */
export class Authenticator {
  private readonly owners = new LRUCache<string, Caller>({ max: REMEMBERED_KEYS });

  constructor(
    private readonly books: BooksReader,
    private readonly secrets: Secrets,
    private readonly clock: Clock,
  ) {}

  /** Returns the payer. Whether it may spend is decided by the hold. */
  async payer(request: FastifyRequest): Promise<Caller> {
    const apiKey = apiKeyOf(request);
    if (apiKey === undefined) return { accountId: claimedAccount(request), keyId: null };
    const hash = this.secrets.hash(apiKey);
    const known = this.owners.get(hash);
    if (known) return known;
    const caller = await this.verify(hash);
    this.owners.set(hash, caller);
    return caller;
  }

  /** Remembers the owner of a key that was made here, which is found before the read models show it. */
  remember(apiKey: string, caller: Caller): void {
    this.owners.set(this.secrets.hash(apiKey), caller);
  }

  /** Returns who reads what is public: nobody known, without a credential. @throws Unauthorized when it is wrong */
  async visitor(request: FastifyRequest): Promise<Caller | undefined> {
    const anonymous = apiKeyOf(request) === undefined && request.headers['x-credit-id'] === undefined;
    return anonymous ? undefined : this.reader(request);
  }

  /** Returns the reader: by an active key, or by the account's id in a header or at `creditId`. */
  async reader(request: FastifyRequest, creditId?: unknown): Promise<Caller> {
    const apiKey = apiKeyOf(request);
    if (apiKey !== undefined) return this.verify(this.secrets.hash(apiKey));
    return { accountId: await this.accountOf(request, creditId), keyId: null };
  }

  /** The account that manages its keys: only ever by its own id. */
  async accountOf(request: FastifyRequest, creditId?: unknown): Promise<string> {
    const claimed = claimedAccount(request, creditId);
    if (!(await this.books.knows(claimed))) throw new Unauthorized(INVALID_ACCOUNT);
    return claimed;
  }

  /** The id of an account's key, by its secret; undefined when the account has no such key. */
  async keyOf(account: string, apiKey: string): Promise<string | undefined> {
    const owner = await findKey(this.books.pool, this.secrets.hash(apiKey));
    return owner?.accountId === account ? owner.keyId : undefined;
  }

  /** A key that the read model does not show yet was made a moment ago, if it was made at all. */
  private async verify(hash: string): Promise<Caller> {
    const owner = await findKey(this.books.pool, hash);
    const made = owner ? undefined : this.owners.get(hash);
    if (made) return made;
    if (!owner || owner.revoked) throw new Unauthorized(INVALID_KEY);
    if (owner.expireAt !== null && owner.expireAt <= this.clock.now())
      throw new Unauthorized('The API key has expired');
    return { accountId: owner.accountId, keyId: owner.keyId };
  }
}

/** The key that a request carries, in any of the headers that clients use. */
function apiKeyOf({ headers }: FastifyRequest): string | undefined {
  const { authorization: sent = '' } = headers; // some clients send it empty beside another header
  if (sent.length > MAX_CREDENTIAL) throw new Unauthorized(INVALID_KEY);
  const authorization = /^Bearer\s*$/i.test(sent) ? '' : sent;
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
  if (authorization !== '' && bearer === undefined) {
    throw new Unauthorized('Authorization must have the form "Bearer <API key>"');
  }
  const header = headers['x-api-key'] ?? headers['api-key'];
  if (typeof header === 'string' && header.length > MAX_CREDENTIAL) throw new Unauthorized(INVALID_KEY);
  return bearer ?? (typeof header === 'string' ? header : undefined);
}

/** The account that a request names, which need not exist. */
function claimedAccount({ headers }: FastifyRequest, creditId?: unknown): string {
  const claimed = creditId ?? headers['x-credit-id'];
  if (claimed === undefined) {
    throw new Unauthorized('A credential is missing: send Authorization, x-api-key or x-credit-id');
  }
  if (typeof claimed !== 'string' || !UUID.test(claimed)) throw new Unauthorized(INVALID_ACCOUNT);
  return claimed.toLowerCase();
}
