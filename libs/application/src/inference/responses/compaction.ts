/**
 * A conversation in fewer words: the model writes down what it needs to go on, and an item stands for all that was said.
 * No secret: it is encoded as OpenAI's is, which clients keep as it is.
 */
import { isJsonObject, type JsonObject } from '#kernel';
import { InvalidRequestError } from '../../errors.ts';

import type { ChatDelta, TypedEvent } from '../chat/translating-writer.ts';
import type { ChatMessage } from './parts.ts';

/** What vendors encrypt by themselves begins otherwise. */
const COMPACTION_PREFIX = 'chat-compaction.';

const INSTRUCTION =
  'Stop here. Your memory of this conversation will be replaced by what you write now, so that there is room to go on. ' +
  'Write down all that you need to go on without it: what the user wants, word for word where the words matter; what was ' +
  'done and found out, with names, paths, numbers and results; what was decided and why; what failed; and what is to be ' +
  'done next. Call no tools, and write nothing else.';

/** What the model is told where a conversation is to be compacted. */
export const COMPACTION_PROMPT: ChatMessage = { role: 'user', content: INSTRUCTION };

/** Whether the conversation is to be compacted, instead of answered. */
export function isCompactionRequest(input: readonly unknown[]): boolean {
  const last = input.at(-1);
  return isJsonObject(last) && last.type === 'compaction_trigger';
}

/** What stands for a conversation, in a chat. @throws InvalidRequestError when it was made elsewhere, or was changed */
export function toSummaryMessage({ encrypted_content: sealed }: JsonObject, param: string): ChatMessage {
  if (typeof sealed !== 'string' || !sealed.startsWith(COMPACTION_PREFIX)) {
    const field = `${param}.encrypted_content`;
    throw new InvalidRequestError(400, `${field} was not made here: what it stands for cannot be read`, field);
  }
  const summary = Buffer.from(sealed.slice(COMPACTION_PREFIX.length), 'base64').toString();
  return { role: 'user', content: `What was said and done before, as you wrote it down:\n\n${summary}` };
}

/** What a conversation goes on from: what its users said, and the item that stands for the rest. */
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

/** The output of a response that compacts: one item, made of all text of the answer. */
export class CompactionOutput {
  private text = '';
  readonly items: CompactionItem[] = [];
  readonly outputText = '';

  /** @param id what the id of the item is made of */
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

  /** A model that wrote nothing down has nothing to go on from. */
  end(): readonly TypedEvent[] {
    if (this.text.trim() === '') return [];
    const encrypted_content = COMPACTION_PREFIX + Buffer.from(this.text).toString('base64');
    const item: CompactionItem = { id: `cmp_${this.id}`, type: 'compaction', encrypted_content };
    this.items.push(item);
    return ['added', 'done'].map((state) => ({ type: `response.output_item.${state}`, output_index: 0, item }));
  }

  /** What it has of it stands for nothing. */
  interrupt(): void {
    this.items.length = 0;
  }
}
