import { jsonContent, type OperationOptions, sseContent } from '../openapi/operation.ts';
import { MessageRequest, TokenCountRequest } from './messages.requests.ts';
import { AnthropicMessageSchema, MessageStreamEvent, TokenCount } from './messages.schemas.ts';

const HELLO = { model: 'anthropic/claude-haiku-4.5', messages: [{ role: 'user', content: 'Hello' }] };

export const createMessage: OperationOptions = {
  id: 'createMessage',
  tag: 'Inference',
  summary: 'Creates a message',
  description:
    'Anthropic’s Messages API, with every chat model. Anthropic’s clients work with the base URL of the gateway. The actual cost is in `usage`.',
  auth: 'key',
  paid: true,
  searches: true,
  errorFormat: 'anthropic',
  body: MessageRequest,
  example: { ...HELLO, max_tokens: 1_024 },
  response: { ...jsonContent(AnthropicMessageSchema), ...sseContent(MessageStreamEvent) },
  errors: [402, 404, 409, 410, 429, 502, 504],
};

export const countMessageTokens: OperationOptions = {
  id: 'countMessageTokens',
  tag: 'Inference',
  summary: 'Estimates the input tokens of a message',
  description:
    'Free of charge. Each provider counts tokens in its own way; messages are charged by the provider’s count.',
  auth: 'key',
  largeBody: true,
  errorFormat: 'anthropic',
  body: TokenCountRequest,
  example: HELLO,
  response: jsonContent(TokenCount),
  errors: [402, 404, 410],
};
