/**
 * The caller is found before the body of a request is read: a stranger sends no body. A guard of Nest's comes
 * too late for that, and a hook of the whole instance would answer without CORS headers, which no browser shows to its page.
 */
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { actorOf, type Caller } from '#application';
import { type Cause, startedBy } from '#kernel';
import type { OperationNotes } from '../openapi/operation.ts';
import type { Authenticator } from './authenticator.ts';

/** Images and files come inside the JSON. */
export const MAX_BODY_BYTES = 25 * 1024 * 1024;
/** Limit of a body that is not paid for. */
const MAX_SETTINGS_BYTES = 64 * 1024;
/** Limit of a body that must be read to find the account, or that needs no account. */
const MAX_UNKNOWN_BYTES = 4 * 1024;

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
      request.caller = await find(request);
    };
    if (operation.payer === 'body') route.preHandler = [route.preHandler ?? [], hook].flat();
    else route.preParsing = [route.preParsing ?? [], hook].flat();
  });
}

function bodyLimitOf({ auth, paid, payer }: OperationNotes): number {
  if (auth === 'public' || payer === 'body') return MAX_UNKNOWN_BYTES;
  return paid ? MAX_BODY_BYTES : MAX_SETTINGS_BYTES;
}

function finderOf({ auth, paid, payer }: OperationNotes, authenticator: Authenticator) {
  if (auth === 'public') return undefined;
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
