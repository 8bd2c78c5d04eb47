/**
 * Encodes the reasoning of a chat message, with the signatures that its model requires in later requests, in
 * `encrypted_content` of an item of Responses, or in `data` of a block of Messages. Clients send this field back
 * unchanged. The reasoning is encoded but not encrypted: its text is also the item's summary.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';
import { countJsonValues } from '../../json-limits.ts';

/** Distinguishes our encoding from content that a provider has encrypted. */
const REASONING_PREFIX = 'chat-reasoning.';
/** Maximum in all reasoning of a request. The reasoning that fills the largest context has about half as many. */
const MAX_JSON_VALUES = 200_000;
/** Text fields that arrive in chunks. */
const TEXT_FIELDS = ['text', 'summary', 'data'] as const;

/** Whether an item's reasoning was generated in a chat. Other protocols cannot use it. */
export function isChatReasoning({ encrypted_content }: JsonObject): boolean {
  return isEncodedReasoning(encrypted_content);
}

export function isEncodedReasoning(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith(REASONING_PREFIX);
}

/**
 * @param details in OpenRouter's format:
 * https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning
 */
export function encodeReasoning(details: readonly JsonObject[]): string {
  return REASONING_PREFIX + Buffer.from(JSON.stringify(details)).toString('base64');
}

/** Decodes the reasoning in one request. */
export class ReasoningDecoder {
  private jsonValues = 0;

  /**
   * Decodes the reasoning of an item for a chat message.
   * @returns an empty list if the reasoning was not generated in a chat
   * @throws InvalidRequestError (400), as `decodeText` does
   */
  decode({ encrypted_content }: JsonObject, param: string): readonly JsonObject[] {
    return isEncodedReasoning(encrypted_content)
      ? this.decodeText(encrypted_content, `${param}.encrypted_content`)
      : [];
  }

  /**
   * @param field path of the text in the request
   * @throws InvalidRequestError (400) if the reasoning cannot be decoded, because the client has changed it, or if the
   * request has too much reasoning to parse it at once
   */
  decodeText(text: string, field: string): readonly JsonObject[] {
    const json = Buffer.from(text.slice(REASONING_PREFIX.length), 'base64').toString();
    this.jsonValues += countJsonValues(json, MAX_JSON_VALUES);
    if (this.jsonValues > MAX_JSON_VALUES) {
      const message = `The reasoning of all items must have at most ${MAX_JSON_VALUES} of the characters {, [, : and ,`;
      throw new InvalidRequestError(400, message, field);
    }
    try {
      const details = JSON.parse(json);
      if (Array.isArray(details) && details.every(isJsonObject)) return details;
    } catch {} // rejected below, like JSON that is not a list of objects
    throw new InvalidRequestError(400, `${field} must be sent back unchanged`, field);
  }
}

/** Joins chunks of reasoning. Chunks with the same index and type belong together. */
export class ReasoningCollector {
  readonly collected: JsonObject[] = [];
  /** Position in `collected`, by the index and type of the chunks. */
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

/** Removes encrypted reasoning for clients that did not request it. */
export function omitEncryptedReasoning<T extends { readonly type?: unknown }>(item: T): T {
  if (item.type !== 'reasoning' || !('encrypted_content' in item)) return item;
  const { encrypted_content: _, ...visible } = item;
  return visible as unknown as T;
}
