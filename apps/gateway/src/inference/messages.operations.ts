import { jsonContent, type OperationOptions, sseContent } from '../openapi/operation.ts';
import { MessageRequest, TokenCountRequest } from './messages.requests.ts';
import { AnthropicMessageSchema, MessageStreamEvent, TokenCount } from './messages.schemas.ts';

const HELLO = { model: 'anthropic/claude-haiku-4.5', messages: [{ role: 'user', content: 'Hello' }] };

export const createMessage: OperationOptions = {
  id: 'createMessage',
  tag: 'Inference',
  summary: 'Creates a message',
  description:
    'Anthropic’s Messages, with every chat model: their clients work by their base URL alone. The actual cost is in the usage.',
  auth: 'key',
  paid: true,
  errorFormat: 'anthropic',
  body: MessageRequest,
  example: { ...HELLO, max_tokens: 1_024 },
  response: { ...jsonContent(AnthropicMessageSchema), ...sseContent(MessageStreamEvent) },
  errors: [402, 404, 409, 429, 502, 504],
};

export const countMessageTokens: OperationOptions = {
  id: 'countMessageTokens',
  tag: 'Inference',
  summary: 'Estimates the input tokens of a message',
  description: 'Costs nothing. Vendors count each in their own way; what is charged is what they report.',
  auth: 'key',
  largeBody: true,
  errorFormat: 'anthropic',
  body: TokenCountRequest,
  example: HELLO,
  response: jsonContent(TokenCount),
  errors: [404],
};
