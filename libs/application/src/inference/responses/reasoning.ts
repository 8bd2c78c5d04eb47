/**
 * What a model thought, as it wants it back to go on from there: the reasoning of a chat message with its signatures, in
 * the one field of an item that clients keep as it is. No secret: its text is the item's summary.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

/** What vendors encrypt by themselves begins otherwise. */
const REASONING_PREFIX = 'chat-reasoning.';
/** Texts that come in pieces. */
const TEXT_FIELDS = ['text', 'summary', 'data'] as const;

/** Whether an item's reasoning was made in a chat: other protocols have no use for it. */
export function isChatReasoning({ encrypted_content }: JsonObject): boolean {
  return typeof encrypted_content === 'string' && encrypted_content.startsWith(REASONING_PREFIX);
}

/** @param details as OpenRouter shapes them: https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning */
export function encodeReasoning(details: readonly JsonObject[]): string {
  return REASONING_PREFIX + Buffer.from(JSON.stringify(details)).toString('base64');
}

/**
 * The reasoning of an item for a chat message; nothing where it is no chat's.
 * @throws InvalidRequestError when it was changed
 */
export function decodeReasoning(item: JsonObject, param: string): readonly JsonObject[] {
  if (!isChatReasoning(item)) return [];
  try {
    const details = JSON.parse(
      Buffer.from(String(item.encrypted_content).slice(REASONING_PREFIX.length), 'base64').toString(),
    );
    if (Array.isArray(details) && details.every(isJsonObject)) return details;
  } catch {} // refused with all else that is no list
  const field = `${param}.encrypted_content`;
  throw new InvalidRequestError(400, `${field} is not as it was answered`, field);
}

/** Pieces of reasoning as they come, in whole ones: those of one index and type belong together. */
export class ReasoningCollector {
  readonly collected: JsonObject[] = [];
  /** By what their pieces have in common. */
  private readonly indexes = new Map<string, number>();

  add(chunks: readonly JsonObject[]): void {
    for (const chunk of chunks) {
      const { index, type } = chunk;
      const name = index === undefined ? undefined : JSON.stringify([index, type]);
      const at = name === undefined ? undefined : this.indexes.get(name);
      if (at === undefined) {
        if (name !== undefined) this.indexes.set(name, this.collected.length);
        this.collected.push(chunk);
      } else {
        const before = this.collected[at] as JsonObject;
        this.collected[at] = { ...before, ...omitNullish(chunk), ...joinTexts(before, chunk) };
      }
    }
  }
}

function omitNullish(chunk: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(chunk).filter(([, value]) => value !== null && value !== undefined));
}

function joinTexts(before: JsonObject, chunk: JsonObject): JsonObject {
  const texts = TEXT_FIELDS.filter((field) => typeof before[field] === 'string' && typeof chunk[field] === 'string');
  return Object.fromEntries(texts.map((field) => [field, `${before[field]}${chunk[field]}`]));
}

/** An item as a client sees it that has not asked for reasoning that it cannot read. */
export function omitEncryptedReasoning<T extends { readonly type?: unknown }>(item: T): T {
  if (item.type !== 'reasoning' || !('encrypted_content' in item)) return item;
  const { encrypted_content: _, ...visible } = item;
  return visible as unknown as T;
}
