import type { FastifyRequest } from 'fastify';

/** A body whose model is an object with an id, as some clients send it, with the id itself; others as they are. */
export function withModelId(body: unknown): unknown {
  const { model } = (body ?? {}) as { readonly model?: unknown };
  if (typeof model !== 'object' || model === null) return body;
  const { id } = model as { readonly id?: unknown };
  return typeof id === 'string' ? { ...(body as object), model: id } : body;
}

/** Where a use says it comes from, as the query history shows it. */
export function sourceOf({ headers }: FastifyRequest): 'ui' | 'api' {
  return headers['x-query-source'] === 'ui' ? 'ui' : 'api';
}
