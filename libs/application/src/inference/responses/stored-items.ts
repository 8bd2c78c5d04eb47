/** The items of a conversation as they are listed: each complete, with an id. */
import { UnservableRequest } from '../../errors.ts';
import type { Thing } from '../../wire/json-object.ts';
import { withoutEncrypted } from './reasoning.ts';
import type { Conversation } from './stored-parts.ts';

/** A part of a list. */
export interface ItemPage {
  /** The id of the last item of the page before. */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Whether reasoning is wanted that cannot be read. */
  readonly showsEncrypted: boolean;
}

/** All that a response was made of: what was said before, and its own input. */
export function inputOf({ items, response }: Conversation): readonly Thing[] {
  const { id, output } = JSON.parse(response) as { readonly id: string; readonly output: readonly unknown[] };
  return items
    .slice(0, items.length - output.length)
    .map((item, at) => listed(item, `${id.slice('resp_'.length)}_${at}`));
}

/** OpenAI's list. @throws UnservableRequest when there is no item to go on after */
export function pageOf(items: readonly Thing[], { after, limit, order, showsEncrypted }: ItemPage): Thing {
  const all = order === 'asc' ? items : items.toReversed();
  const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw new UnservableRequest(400, 'There is no such item', 'after');
  const data = all.slice(start, start + limit);
  return {
    object: 'list',
    data: showsEncrypted ? data : data.map(withoutEncrypted),
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + data.length < all.length,
  };
}

/** Items that have a status, beside messages. */
const CALLS = /_call(_output)?$/;

/** @param id for an item that has none */
export function listed({ made_by, ...item }: Thing, id: string): Thing {
  const { type = 'message', role, content, status = 'completed' } = item;
  if (type !== 'message')
    return { ...item, id: item.id ?? `item_${id}`, ...(CALLS.test(String(type)) ? { status } : {}) };
  const part = role === 'assistant' ? { type: 'output_text', annotations: [] } : { type: 'input_text' };
  const parts = typeof content === 'string' ? [{ ...part, text: content }] : content;
  return { ...item, type, id: item.id ?? `msg_${id}`, status, role, content: parts };
}
