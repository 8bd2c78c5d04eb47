/**
 * `#application/messages`: translates between Anthropic's Messages API and chats, and collects streamed chats into
 * non-streaming completions. For processes without billing: importing this loads no framework, catalogue or ledger.
 */

export { ByteAccumulator } from '../../byte-accumulator.ts';
export { InvalidRequestError } from '../../errors.ts';
export { shareEventLoop } from '../../event-loop.ts';
export { isWithinJsonLimits } from '../../json-limits.ts';

export { TokenCounter } from '../../tokens/token-counter.ts';
export { formatSseEvent, MAX_EVENT_CHARACTERS, SSE_DONE } from '../../wire/sse.ts';
export type { ChatBody } from '../chat/chat-body.ts';
export { ChatChunkCollector } from '../chat/chat-chunk-collector.ts';
export { estimateInputTokens } from '../chat/count-tokens.ts';
export type { TypedEvent } from '../chat/translating-writer.ts';
export type { MessagesBody } from './body.ts';
export { getMessageErrorType } from './error-type.ts';
export { MessageBuilder, type MessageUsage } from './message-builder.ts';
export { type ParsedMessagesRequest, parseMessagesRequest } from './request.ts';
