/**
 * The translation between Anthropic's Messages and chats, and between a chat's chunks and its answer in one piece, for programs that
 * have nothing to do with money: `#application/messages`. Importing it loads no framework, no catalogue and no books.
 */
export { UnservableRequest } from '../../failures.ts';
export { Gathered } from '../../gathered.ts';
export { isParsable } from '../../parsable.ts';
export type { ChatBody } from '../vocabulary/chat-body.ts';
export { CollectedChat } from '../vocabulary/collected-chat.ts';
export type { TypedEvent } from '../vocabulary/event-client.ts';
export { DONE, MAX_EVENT_CHARACTERS, SseReader, sseData, sseEvent } from '../vocabulary/sse.ts';
export { isObject, type Thing } from '../vocabulary/things.ts';
export { estimatedInputTokens } from '../vocabulary/tokens.ts';
export type { MessagesBody } from './body.ts';
export { messageErrorType } from './error-type.ts';
export { MessageDraft, type MessageUsage } from './message-draft.ts';
export { type MessagesRequest, readMessagesRequest } from './request.ts';
