import type { FastifyRequest } from 'fastify';

/** Replaces a model object by its id, as some clients send one; other bodies stay as they are. */
export function withModelId(body: unknown): unknown {
  const { model } = (body ?? {}) as { readonly model?: unknown };
  if (typeof model !== 'object' || model === null) return body;
  const { id } = model as { readonly id?: unknown };
  return typeof id === 'string' ? { ...(body as object), model: id } : body;
}

/** The source of a request, as the query history shows it. */
export function sourceOf({ headers }: FastifyRequest): 'ui' | 'api' {
  return headers['x-query-source'] === 'ui' ? 'ui' : 'api';
}
