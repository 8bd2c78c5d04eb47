/** What Groq and DeepInfra reject although OpenAI accepts it, in their words. */
import { HttpError } from '../router.ts';
import { invalidRequestError } from './errors.ts';
import type { OpenAiProvider } from './models.ts';
import { isPresent, type SandboxBody } from './parameters.ts';

/** https://console.groq.com/docs/openai#currently-unsupported-openai-features, and fields that its API does not have. */
const GROQ_UNSUPPORTED = ['top_k', 'min_p', 'repetition_penalty', 'logprobs', 'top_logprobs', 'logit_bias'];
/** https://deepinfra.com/docs/openai_api */
const DEEPINFRA_MAX_CHOICES = 4;
const DEEPINFRA_UNSUPPORTED = ['top_logprobs'];
const DEEPINFRA_ROLES = ['system', 'user', 'assistant', 'tool'];

type Check = (body: SandboxBody) => void;

const CHAT_CHECKS: Readonly<Record<string, Check>> = { groq: assertGroqChat, deepinfra: assertDeepInfraChat };

/** @throws HttpError in the provider's format */
export function assertProviderAccepts(body: SandboxBody, { name }: OpenAiProvider): void {
  CHAT_CHECKS[name]?.(body);
}

/** @throws HttpError in the provider's format */
export function assertProviderEmbeds({ input, user }: SandboxBody, { name }: OpenAiProvider): void {
  if (name !== 'deepinfra') return;
  if (isPresent(user)) throw unprocessableError(['user'], 'Extra inputs are not permitted', 'extra_forbidden');
  const entries: readonly unknown[] = Array.isArray(input) ? input : [input];
  const at = entries.findIndex((entry) => typeof entry !== 'string');
  if (at >= 0) throw unprocessableError(['input', at], 'Input should be a valid string', 'string_type');
}

function assertGroqChat(body: SandboxBody): void {
  const unsupported = GROQ_UNSUPPORTED.find((name) => isPresent(body[name]));
  if (unsupported) throw invalidRequestError(400, `property '${unsupported}' is unsupported`);
  if (isPresent(body.n) && body.n !== 1)
    throw invalidRequestError(400, "'n' : number must be at most 1", 'n', 'invalid_parameter');
}

function assertDeepInfraChat(body: SandboxBody): void {
  const unsupported = DEEPINFRA_UNSUPPORTED.find((name) => isPresent(body[name]));
  if (unsupported) throw unprocessableError([unsupported], 'Extra inputs are not permitted', 'extra_forbidden');
  if (Number(body.n ?? 1) > DEEPINFRA_MAX_CHOICES)
    throw unprocessableError(
      ['n'],
      `Input should be less than or equal to ${DEEPINFRA_MAX_CHOICES}`,
      'less_than_equal',
    );
  const messages = (Array.isArray(body.messages) ? body.messages : []) as readonly (SandboxBody | null)[];
  const at = messages.findIndex((message) => !DEEPINFRA_ROLES.includes(String(message?.role)));
  if (at < 0) return;
  const tags = DEEPINFRA_ROLES.map((role) => `'${role}'`).join(', ');
  const message = `Input tag '${messages[at]?.role}' found using 'role' does not match any of the expected tags: ${tags}`;
  throw unprocessableError(['messages', at], message, 'union_tag_invalid');
}

/** @param path the path of the field in the body */
function unprocessableError(path: readonly (string | number)[], msg: string, type: string): HttpError {
  return new HttpError(422, { detail: [{ loc: ['body', ...path], msg, type }] });
}
