/**
 * Compacts a conversation: the model generates a summary, which replaces all items but the user messages. The summary
 * is encoded but not encrypted, in the field whose content clients send back unchanged.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import type { ChatMessage } from './parts.ts';

/** Distinguishes our encoding from content that a provider has encrypted. */
const COMPACTION_PREFIX = 'chat-compaction.';

const INSTRUCTION =
  'Stop here. Your memory of this conversation will be replaced by what you write now, so that there is room to go on. ' +
  'Write down all that you need to go on without it: what the user wants, word for word where the words matter; what was ' +
  'done and found out, with names, paths, numbers and results; what was decided and why; what failed; and what is to be ' +
  'done next. Call no tools, and write nothing else.';

export const COMPACTION_PROMPT: ChatMessage = { role: 'user', content: INSTRUCTION };

/** Whether the last item of the input requests a compaction. */
export function isCompactionRequest(input: readonly unknown[]): boolean {
  const last = input.at(-1);
  return isJsonObject(last) && last.type === 'compaction_trigger';
}

/**
 * Converts a compaction item to a message with its summary.
 * @throws InvalidRequestError (400) if the content of the item does not have the encoding of this service
 */
export function toSummaryMessage({ encrypted_content: sealed }: JsonObject, param: string): ChatMessage {
  if (typeof sealed !== 'string' || !sealed.startsWith(COMPACTION_PREFIX)) {
    const field = `${param}.encrypted_content`;
    throw new InvalidRequestError(400, `${field} was not created by this service and cannot be decoded`, field);
  }
  const summary = Buffer.from(sealed.slice(COMPACTION_PREFIX.length), 'base64').toString();
  return { role: 'user', content: `What was said and done before, as you wrote it down:\n\n${summary}` };
}

/** Returns the items that replace a compacted conversation: its user messages and the compaction item. */
export function toCompactedConversation(
  inputItems: readonly JsonObject[],
  outputItems: readonly JsonObject[],
): readonly JsonObject[] {
  const users = inputItems.filter(({ type = 'message', role }) => type === 'message' && role === 'user');
  return [...users, ...outputItems];
}

type CompactionItem = JsonObject & {
  readonly type: 'compaction';
  readonly id: string;
  readonly encrypted_content: string;
};

/** The output of a response that compacts a conversation: one item with the complete text of the completion. */
export class CompactionOutput {
  private text = '';
  readonly items: CompactionItem[] = [];
  readonly outputText = '';

  /** @param id included in the id of the item */
  constructor(private readonly id: string) {}

  get retainedItems(): readonly CompactionItem[] {
    return this.items;
  }

  accept({ content }: ChatDelta): readonly TypedEvent[] {
    if (typeof content === 'string') this.text += content;
    return [];
  }

  recordSearch(): readonly TypedEvent[] {
    return [];
  }

  /** Creates the item. There is none if the model generated no summary. */
  end(): readonly TypedEvent[] {
    if (this.text.trim() === '') return [];
    const encrypted_content = COMPACTION_PREFIX + Buffer.from(this.text).toString('base64');
    const item: CompactionItem = { id: `cmp_${this.id}`, type: 'compaction', encrypted_content };
    this.items.push(item);
    return ['added', 'done'].map((state) => ({ type: `response.output_item.${state}`, output_index: 0, item }));
  }

  /** Removes the item, because an incomplete summary cannot replace the conversation. */
  interrupt(): void {
    this.items.length = 0;
  }
}
