/**
 * A conversation as it is stored: each response has what is new with it, and says what goes on in it of the conversation
 * before. So one that grows is written once, however long it is.
 */
import { type JsonObject } from '#kernel';

/** A response and all that was said up to it, itself included. */
export interface Conversation {
  /** Of all inputs and outputs, from any endpoint: a chat is made of them for endpoints that only speak chat. */
  readonly items: readonly JsonObject[];
  /** The response as it was answered: JSON, whose numbers are not to be read and written again. */
  readonly response: string;
}

/** Items of the conversation before, by their places in it. */
type ItemRange = readonly [from: number, to: number];

export interface StoredPart {
  readonly items: readonly (JsonObject | ItemRange)[];
  readonly response: string;
}

/** @param before the items of the conversation that it goes on from: those that are the same objects are not written again */
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

/** @param parts from the first one on */
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
