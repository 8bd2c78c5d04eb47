/**
 * Routes requests of an account that begin alike to the same endpoint, because only that endpoint has their input in
 * its cache.
 */
import { createHash } from 'node:crypto';

/**
 * Maximum characters of a beginning. Providers cache from about 1,024 tokens on, so longer texts with this beginning
 * share what is cached of it.
 */
const MAX_CHARACTERS = 4_096;
const INSTRUCTION_ROLES: ReadonlySet<unknown> = new Set(['system', 'developer']);
const HASH_BYTES = 6;

/** The fields of a chat that determine what its provider caches. */
interface CachedRequest {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly prompt_cache_key?: unknown;
}

/**
 * Returns a number, at least 0 and below 1, that every gateway computes alike for requests of one account and model
 * with the same `prompt_cache_key` or, without one, the same beginning: the instructions and the first message after
 * them. It is the same for all turns of a conversation, and uniformly distributed among conversations.
 */
export function calculateStickyChance(body: CachedRequest, { payer, model }: { payer: string; model: string }): number {
  const key = body.prompt_cache_key;
  const source = typeof key === 'string' && key !== '' ? ['key', key] : ['messages', getFirstTexts(body.messages)];
  const digest = createHash('sha256')
    .update(JSON.stringify([payer, model, ...source]))
    .digest();
  return digest.readUIntBE(0, HASH_BYTES) / 2 ** (8 * HASH_BYTES);
}

function getFirstTexts(messages: CachedRequest['messages']): string {
  let text = '';
  for (const { role, content } of messages) {
    text = appendTexts(`${text}\n${String(role)}: `, content);
    if (!INSTRUCTION_ROLES.has(role) || text.length >= MAX_CHARACTERS) break;
  }
  return text.slice(0, MAX_CHARACTERS);
}

/** Appends the texts in a value, such as content parts, until the maximum length is reached. */
function appendTexts(text: string, value: unknown): string {
  if (typeof value === 'string') return text + value.slice(0, MAX_CHARACTERS);
  if (typeof value !== 'object' || value === null) return text;
  let extended = text;
  for (const member of Object.values(value)) {
    if (extended.length >= MAX_CHARACTERS) break;
    extended = appendTexts(extended, member);
  }
  return extended;
}
