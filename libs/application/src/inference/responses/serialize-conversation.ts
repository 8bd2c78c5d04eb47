/** Serialises conversations for their storage, within the limits of their size, without holding the event loop. */
import { WorkParts } from '../../event-loop.ts';
import { serializeJson } from '../../wire/serialize-json.ts';
import { type Conversation, type LoadedConversation, toStoredPart } from './stored-parts.ts';

/** A longer conversation, for example with large attachments, is not stored: every turn would load all of it again. */
export const MAX_CONVERSATION_CHARACTERS = 32 * 1024 * 1024;
/** Maximum number of stored responses that form a conversation. Beyond it, the next response stores all items again. */
const MAX_CONVERSATION_PARTS = 1_000;
/** Maximum length of items copied from conversations other than the continued one. Beyond it, nothing is stored. */
const MAX_COPIED_CHARACTERS = 1024 * 1024;

export interface SerializedConversation {
  /** The response that this one continues; null if the JSON is the complete conversation. */
  readonly previousId: string | null;
  /** In several buffers. */
  readonly json: readonly Buffer[];
}

/**
 * Serialises the new items of a conversation, and ranges of the continued items. Serialises all items if no
 * conversation is continued, or if the parts would be too many or too long.
 * @returns undefined if the conversation, or what it copies from other conversations, is too long to be stored
 */
export async function serializeConversation(
  conversation: Conversation,
  [before, ...otherConversations]: readonly LoadedConversation[],
): Promise<SerializedConversation | undefined> {
  const otherItems = new Set(otherConversations.flatMap(({ items }) => items));
  const copied = conversation.items.filter((item) => otherItems.has(item));
  if (copied.length > 0 && (await serialize(copied)).length > MAX_COPIED_CHARACTERS) return undefined;
  if (before && before.partCount < MAX_CONVERSATION_PARTS) {
    const { json, length } = await serialize(toStoredPart(conversation, before.items));
    if (before.length + length <= MAX_CONVERSATION_CHARACTERS) return { previousId: before.id, json };
  }
  return serializeFull(conversation);
}

/** Serialises all items. @returns undefined if the conversation is too long to be stored */
export async function serializeFull(conversation: Conversation): Promise<SerializedConversation | undefined> {
  const { json, length } = await serialize(conversation);
  return length > MAX_CONVERSATION_CHARACTERS ? undefined : { previousId: null, json };
}

/** Returns JSON in several buffers, and its length in characters. */
async function serialize(value: object): Promise<{ readonly json: readonly Buffer[]; readonly length: number }> {
  const json = await serializeJson(value);
  if (typeof json === 'string') return { json: [Buffer.from(json)], length: json.length };
  const work = new WorkParts();
  let length = 0;
  for (const buffer of json) {
    length += buffer.toString().length;
    await work.rest();
  }
  return { json, length };
}
