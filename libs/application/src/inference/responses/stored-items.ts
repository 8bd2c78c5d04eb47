/** Lists the items of a stored conversation, each complete and with an id. */
import { type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import { omitEncryptedReasoning } from './reasoning.ts';
import type { Conversation } from './stored-parts.ts';

/** Parameters of one page of a list of items. */
export interface ItemPage {
  /** The id of the last item of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Whether the client requested encrypted reasoning. */
  readonly showsEncrypted: boolean;
}

/**
 * Returns the items of the conversation that a response continues, and its input. A compaction has replaced all items
 * but the user messages.
 */
export function getFullInput({ items, response }: Conversation): readonly JsonObject[] {
  const { id, output } = JSON.parse(response) as { readonly id: string; readonly output: readonly unknown[] };
  return items
    .slice(0, items.length - output.length)
    .map((item, at) => toListedItem(item, `${id.slice('resp_'.length)}_${at}`));
}

/** Returns a page in OpenAI's list format. @throws InvalidRequestError (400) if no item has the id in `after` */
export function paginateItems(
  items: readonly JsonObject[],
  { after, limit, order, showsEncrypted }: ItemPage,
): JsonObject {
  const all = order === 'asc' ? items : items.toReversed();
  const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw new InvalidRequestError(400, 'Item not found', 'after');
  const data = all.slice(start, start + limit);
  return {
    object: 'list',
    data: showsEncrypted ? data : data.map(omitEncryptedReasoning),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + data.length < all.length,
  };
}

/** Types of items that have a status, in addition to messages. */
const CALL_TYPE = /_call(_output)?$/;

/** @param id part of the new id of an item without an id */
export function toListedItem({ made_by, ...item }: JsonObject, id: string): JsonObject {
  const { type = 'message', role, content, status = 'completed' } = item;
  if (type !== 'message')
    return { ...item, id: item.id ?? `item_${id}`, ...(CALL_TYPE.test(String(type)) ? { status } : {}) };
  const part = role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' };
  const parts = typeof content === 'string' ? [{ ...part, text: content }] : content;
  return { ...item, type, id: item.id ?? `msg_${id}`, status, role, content: parts };
}
