import type { FastifyRequest } from 'fastify';

/** Where a use says it comes from, as the query history shows it. */
export function sourceOf({ headers }: FastifyRequest): 'ui' | 'api' {
  return headers['x-query-source'] === 'ui' ? 'ui' : 'api';
}
