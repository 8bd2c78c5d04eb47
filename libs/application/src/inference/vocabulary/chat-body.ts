import type { Endpoint } from '#catalogue';
import { providerFor } from '../../routing/passed-on.ts';
import type { Reasoning } from './reasoning.ts';

/** A chat request in OpenAI's shape, as far as the gateway reads it; the rest passes through. */
export interface ChatBody {
  readonly model: string;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly stream?: boolean | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly n?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly response_format?: unknown;
  readonly [field: string]: unknown;
}

/** Fields that clients have several names for. */
const RENAMED: ReadonlySet<string> = new Set([
  'max_tokens',
  'max_completion_tokens',
  'reasoning',
  'reasoning_effort',
  'include_reasoning',
]);

/** The caller's own limit on output tokens of one choice, if there is one. */
export function wantedOutput({ max_completion_tokens, max_tokens }: ChatBody): number | undefined {
  return max_completion_tokens ?? max_tokens ?? undefined;
}

/**
 * The request for an upstream: the fields that it knows; all others are ours, or would be refused. Usage is always
 * asked for. The limit goes by OpenAI's present name and reasoning as OpenRouter's object, whatever the caller called
 * them: connectors say it in their upstream's words.
 * @param limit output tokens per choice at most; undefined for as many as the model makes
 */
export function upstreamBody(
  body: ChatBody,
  endpoint: Pick<Endpoint, 'model' | 'parameters' | 'routes' | 'slug'>,
  limit: number | undefined,
  reasoning?: Reasoning,
): Record<string, unknown> {
  const { model, parameters } = endpoint;
  const sent: Record<string, unknown> = { model, messages: body.messages };
  for (const field of parameters) {
    const value = body[field];
    if (value !== undefined && value !== null && !RENAMED.has(field)) sent[field] = value;
  }
  if (sent.provider !== undefined) sent.provider = providerFor(endpoint, sent.provider);
  if (limit !== undefined) sent.max_completion_tokens = limit;
  if (reasoning !== undefined && parameters.includes('reasoning')) sent.reasoning = reasoning;
  if (body.stream) {
    sent.stream = true;
    sent.stream_options = { include_usage: true };
  }
  return sent;
}
