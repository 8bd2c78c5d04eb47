/** Reads the headers with the credential of an account, without checking whether it is valid. */
import type { FastifyRequest } from 'fastify';
import { UnauthorizedError } from '../errors/errors.ts';

export const INVALID_KEY = 'The API key was not found or has been revoked';
/** Longer credentials were never issued, so they are rejected without a lookup. */
const MAX_CREDENTIAL_CHARACTERS = 512;

/** Whether a request has an API key, valid or not. @throws UnauthorizedError for a malformed credential */
export function hasApiKey(request: FastifyRequest): boolean {
  return parseApiKey(request) !== undefined;
}

/**
 * Returns the API key in Authorization, else in x-api-key or api-key; undefined without one.
 * @throws UnauthorizedError if Authorization is not a bearer token, or a header is too long
 */
export function parseApiKey({ headers }: FastifyRequest): string | undefined {
  const { authorization: sent = '' } = headers; // some clients send it empty, together with another header
  if (sent.length > MAX_CREDENTIAL_CHARACTERS) throw new UnauthorizedError(INVALID_KEY);
  const authorization = /^Bearer\s*$/i.test(sent) ? '' : sent;
  const bearer = /^Bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
  if (authorization !== '' && bearer === undefined) {
    throw new UnauthorizedError('Authorization must have the form "Bearer <API key>"');
  }
  const header = headers['x-api-key'] ?? headers['api-key'];
  if (typeof header === 'string' && header.length > MAX_CREDENTIAL_CHARACTERS) throw new UnauthorizedError(INVALID_KEY);
  return bearer ?? (typeof header === 'string' ? header : undefined);
}

/** Returns x-credit-id; undefined without one, or if it is empty, as clients without a credit id send it. */
export function getCreditIdHeader({ headers }: FastifyRequest): string | readonly string[] | undefined {
  return headers['x-credit-id'] || undefined;
}
