/**
 * The storage format of conversations. Each response stores its new items, and refers to earlier items by ranges. So
 * the items of a growing conversation need not be stored again with each response.
 */
import { type JsonObject } from '#kernel';

/** A response and all items of its conversation, including its own output. */
export interface Conversation {
  /** All inputs and outputs, from any endpoint. For endpoints without the Responses API they become a chat. */
  readonly items: readonly JsonObject[];
  /** The response as it was returned, as JSON text: parsing could change its numbers. */
  readonly response: string;
}

/** A stored conversation that a new response may continue. */
export interface LoadedConversation extends Conversation {
  readonly id: string;
  readonly partCount: number;
  /** Total length of its decrypted parts in characters. */
  readonly length: number;
}

/** A range of the items of the continued conversation; `to` is exclusive. */
type ItemRange = readonly [from: number, to: number];

export interface StoredPart {
  readonly items: readonly (JsonObject | ItemRange)[];
  readonly response: string;
}

/**
 * Replaces items of the continued conversation with ranges.
 * @param before the items of the continued conversation, compared by object identity
 */
export function toStoredPart({ items, response }: Conversation, before: readonly JsonObject[]): StoredPart {
  const indexes = new Map(before.map((item, at) => [item, at]));
  const storedItems: (JsonObject | [number, number])[] = [];
  for (const item of items) {
    const at = indexes.get(item);
    const last = storedItems.at(-1);
    if (at === undefined) storedItems.push(item);
    else if (Array.isArray(last) && last[1] === at) last[1] = at + 1;
    else storedItems.push([at, at + 1]);
  }
  return { items: storedItems, response };
}

/** @param parts the stored parts of a conversation, in order */
export function joinParts(parts: readonly StoredPart[]): Conversation {
  let items: readonly JsonObject[] = [];
  for (const part of parts) {
    const before = items;
    items = part.items.flatMap((item) => (isItemRange(item) ? before.slice(...item) : [item]));
  }
  return { items, response: parts.at(-1)?.response ?? '' };
}

function isItemRange(item: JsonObject | ItemRange): item is ItemRange {
  return Array.isArray(item);
}
