/**
 * The translation between Anthropic's Messages and chats, and between a chat's chunks and its answer in one piece, for programs that
 * have nothing to do with money: `#application/messages`. Importing it loads no framework, no catalogue and no books.
 */

export { Gathered } from '../../byte-accumulator.ts';
export { UnservableRequest } from '../../errors.ts';
export { isParsable } from '../../json-limits.ts';
export { isObject, type Thing } from '../../wire/json-object.ts';
export { DONE, MAX_EVENT_CHARACTERS, SseReader, sseData, sseEvent } from '../../wire/sse.ts';
export type { ChatBody } from '../chat/chat-body.ts';
export { CollectedChat } from '../chat/chat-chunk-collector.ts';
export { estimatedInputTokens } from '../chat/count-tokens.ts';
export type { TypedEvent } from '../chat/translating-writer.ts';
export type { MessagesBody } from './body.ts';
export { messageErrorType } from './error-type.ts';
export { MessageDraft, type MessageUsage } from './message-builder.ts';
export { type MessagesRequest, readMessagesRequest } from './request.ts';
