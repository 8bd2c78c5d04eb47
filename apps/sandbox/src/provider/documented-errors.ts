/**
 * Error responses that the providers of chats document for problems of their customer's account, retired models and
 * violations of their content policy. To each of these providers that customer is the gateway's operator.
 */
import { HttpError } from '../router.ts';
import type { Fault } from './directive.ts';

type DocumentedErrors = Readonly<Partial<Record<Fault, readonly [status: number, body: object]>>>;

const toOpenAi = (message: string, type: string, code: string | null) => ({
  error: { message, type, param: null, code },
});
const toAnthropic = (type: string, message: string) => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_sandbox',
});
const toRouter = (code: number, message: string, metadata?: object) => ({ error: { code, message, metadata } });

const toGoogle = (code: number, status: string, message: string, details?: readonly object[]) => ({
  error: { code, message, status, details },
});

const INVALID_KEY = toOpenAi('Incorrect API key provided.', 'invalid_request_error', 'invalid_api_key');
const MODEL_NOT_FOUND = toOpenAi('The model does not exist.', 'invalid_request_error', 'model_not_found');

const ERRORS: Readonly<Record<string, DocumentedErrors>> = {
  // https://platform.openai.com/docs/guides/error-codes
  openai: {
    '401': [401, INVALID_KEY],
    '404': [404, MODEL_NOT_FOUND],
    balance: [429, toOpenAi('You exceeded your current quota.', 'insufficient_quota', 'insufficient_quota')],
    limit: [
      400,
      toOpenAi('Billing hard limit has been reached.', 'invalid_request_error', 'billing_hard_limit_reached'),
    ],
    policy: [400, toOpenAi('Invalid prompt: it was flagged.', 'invalid_request_error', 'invalid_prompt')],
  },
  // https://platform.claude.com/docs/en/api/errors
  anthropic: {
    '401': [401, toAnthropic('authentication_error', 'invalid x-api-key')],
    '402': [402, toAnthropic('billing_error', 'Your account has a billing problem.')],
    '404': [404, toAnthropic('not_found_error', 'model: claude-sandbox')],
    balance: [400, toAnthropic('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.')],
    limit: [400, toAnthropic('invalid_request_error', 'You have reached your specified API usage limits.')],
  },
  // https://openrouter.ai/docs/api-reference/errors
  openrouter: {
    '401': [401, toRouter(401, 'User not found.')],
    '402': [402, toRouter(402, 'Insufficient credits.')],
    '404': [400, toRouter(400, 'sandbox/model is not a valid model ID')],
    balance: [402, toRouter(402, 'Insufficient credits.')],
    limit: [403, toRouter(403, 'Key limit exceeded (total limit).')],
    policy: [403, toRouter(403, 'Your input was flagged', { reasons: ['violence'], flagged_input: 'x' })],
  },
  // https://console.groq.com/docs/errors
  groq: {
    '401': [401, INVALID_KEY],
    '404': [404, MODEL_NOT_FOUND],
    tokens_per_minute: [
      413,
      toOpenAi('Request too large on tokens per minute (TPM).', 'tokens', 'rate_limit_exceeded'),
    ],
  },
  // https://ai.google.dev/gemini-api/docs/troubleshooting
  google: {
    '401': [
      400,
      toGoogle(400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID', domain: 'googleapis.com' },
      ]),
    ],
    '404': [404, toGoogle(404, 'NOT_FOUND', 'models/gemini-sandbox is not found for API version v1beta.')],
    balance: [429, toGoogle(429, 'RESOURCE_EXHAUSTED', 'Your prepayment credits are depleted.')],
    limit: [429, toGoogle(429, 'RESOURCE_EXHAUSTED', 'Your billing account has exceeded its monthly spending cap.')],
  },
  // https://deepinfra.com/docs/openai_api
  deepinfra: {
    '401': [401, { detail: 'Invalid token' }],
    '402': [402, { detail: { error: 'inference prohibited, please enter a payment method' } }],
    '404': [404, MODEL_NOT_FOUND],
    balance: [402, { detail: { error: 'inference prohibited, please enter a payment method' } }],
  },
};

/** @throws HttpError if the provider documents an error response for the fault */
export function applyDocumentedError(provider: string, fault: Fault | undefined): void {
  const error = fault === undefined ? undefined : ERRORS[provider]?.[fault];
  if (error) throw new HttpError(...error);
}
