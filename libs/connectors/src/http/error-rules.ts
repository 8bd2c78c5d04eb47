/** What error responses and error events of providers mean, by rules that are data (`errors` in `providers.json`). */
import {
  createOperatorError,
  type ErrorRuleFile,
  type FailureDetails,
  isOperatorProblem,
  MESSAGE_PROVIDER_UNAVAILABLE,
  type OperatorProblemReason,
  type OperatorProblemScope,
  UpstreamError,
} from '#application';
import type { Usage } from '#domain';
import { isJsonObject, type JsonObject } from '#kernel';

/** The messages of failures. Callers get them unless the provider's own message is included. */
export const MESSAGE_REJECTED = 'The provider rejected the request';
export const MESSAGE_CONTENT_POLICY = 'The request violates the content policy of the provider';
export const MESSAGE_RATE_LIMITED = 'The provider is limiting requests; retry later';
const MESSAGE_OVERLOADED = 'The provider is overloaded; retry later';

/** An error as a provider reports it, in whatever format. */
export interface ErrorReport {
  /** HTTP status or, within a stream, a numeric code. */
  readonly status?: number | undefined;
  readonly type?: string | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  /** The field of the request that caused the error. */
  readonly param?: string | undefined;
  /** The part of the response that describes the error. */
  readonly error?: JsonObject | undefined;
}

/** Returns the failure for an error; undefined if no rule matches, and only the status shows what the error means. */
export type ClassifyError = (report: ErrorReport, retryAfterSeconds?: number) => UpstreamError | undefined;

/**
 * Rules for all providers, which apply after those of the provider. The codes are OpenAI's
 * (https://platform.openai.com/docs/guides/error-codes, `ResponseError` of https://github.com/openai/openai-node),
 * which most OpenAI-compatible providers use too.
 */
const COMMON_RULES: readonly ErrorRuleFile[] = [
  { status: 402, means: 'balance' },
  ...['insufficient_quota', 'billing_not_active'].map((code) => ({ code, means: 'balance' }) as const),
  { code: 'billing_hard_limit_reached', means: 'limit' },
  { code: 'account_deactivated', means: 'blocked' },
  { code: 'invalid_api_key', means: 'credential' },
  { status: 404, code: 'model_not_found', means: 'model_removed' },
  ...[
    'content_policy_violation',
    'moderation_blocked',
    'invalid_prompt',
    'cyber_policy',
    'bio_policy',
    'misalignment_policy_violation',
    'image_content_policy_violation',
  ].map((code) => ({ code, means: 'policy' }) as const),
  // A failed response has no status that would show that its error concerns the input.
  ...[
    'invalid_image',
    'invalid_image_format',
    'invalid_base64_image',
    'invalid_image_url',
    'image_too_large',
    'image_too_small',
    'image_parse_error',
    'invalid_image_mode',
    'image_file_too_large',
    'unsupported_image_media_type',
    'empty_image_file',
    'failed_to_download_image',
    'image_file_not_found',
  ].map((code) => ({ code, means: 'invalid_request' }) as const),
];

/** What each problem of the operator concerns, unless its rule says otherwise. */
const SCOPES: Readonly<Record<OperatorProblemReason, OperatorProblemScope>> = {
  credential: 'service',
  balance: 'service',
  limit: 'service',
  blocked: 'service',
  permission: 'endpoint',
  model_removed: 'endpoint',
  request_too_large: 'request',
};

/** @param providerRules precede the common ones */
export function createErrorClassifier(providerRules: readonly ErrorRuleFile[] = []): ClassifyError {
  const compiled = [...providerRules, ...COMMON_RULES].map((rule) => ({
    rule,
    pattern: rule.message === undefined ? undefined : toPattern(rule.message),
  }));
  return (report, retryAfterSeconds) => {
    const match = compiled.find(({ rule, pattern }) => isMatch(rule, pattern, report));
    return match && toFailure(match.rule, report, retryAfterSeconds);
  };
}

/** Classifies errors of a provider without rules of its own. */
export const classifyCommonError = createErrorClassifier();

function isMatch(
  { status, type, code, field }: ErrorRuleFile,
  message: RegExp | undefined,
  report: ErrorReport,
): boolean {
  return (
    (status === undefined || status === report.status) &&
    (type === undefined || type === report.type) &&
    (code === undefined || code === report.code) &&
    (message === undefined || message.test(report.message ?? '')) &&
    (field === undefined || hasField(report.error, field.split('.')))
  );
}

function hasField(value: unknown, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return (value ?? null) !== null;
  return isJsonObject(value) && hasField(value[name], rest);
}

/** At the beginning, `*` stands for one word: texts of the request that a provider quotes there do not match. */
function toPattern(message: string): RegExp {
  const parts = message.split('*').map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  const pattern = parts.join('.*').replace(/^\.\*/, '\\S*');
  return new RegExp(`^${pattern}$`, 's');
}

function toFailure(
  { means, scope }: Pick<ErrorRuleFile, 'means' | 'scope'>,
  { status, code, message: upstreamMessage, param }: ErrorReport,
  retryAfterSeconds: number | undefined,
): UpstreamError {
  const details = { status, retryAfterSeconds, upstreamMessage, param };
  if (isOperatorProblem(means)) {
    const problem = { reason: means, scope: scope ?? SCOPES[means] };
    return createOperatorError(MESSAGE_PROVIDER_UNAVAILABLE, problem, { status, retryAfterSeconds });
  }
  switch (means) {
    case 'policy':
      return new UpstreamError('content_policy_violation', MESSAGE_CONTENT_POLICY, details);
    case 'rate_limit':
      return new UpstreamError('rate_limited', MESSAGE_RATE_LIMITED, details);
    case 'overloaded':
      return new UpstreamError('upstream_unavailable', MESSAGE_OVERLOADED, details);
    case 'too_long':
      return new UpstreamError('invalid_request', MESSAGE_REJECTED, {
        ...details,
        upstreamCode: 'context_length_exceeded',
      });
    case 'invalid_request':
      return new UpstreamError('invalid_request', MESSAGE_REJECTED, { ...details, upstreamCode: toPublicCode(code) });
  }
}

/**
 * Returns the detail that contains what the provider counted for a failed response. Its customer owes it if the provider
 * withheld the response because of its content policy. After any other failure the call is repeated, or served by another
 * endpoint, and what was counted is the operator's.
 */
export function toUsageDetails(
  { code }: UpstreamError,
  usage: Usage | undefined,
): Pick<FailureDetails, 'usage' | 'unpaidUsage'> {
  return code === 'content_policy_violation' ? { usage } : { unpaidUsage: usage };
}

/**
 * OpenAI's error codes that callers receive. Codes about an account concern the operator's account at the provider and
 * are left out.
 */
const PUBLIC_ERROR_CODE = /^(?!.*(account|billing|key|quota))[a-z_]{1,64}$/;

/** Returns the code of an error if callers receive it. */
export function toPublicCode(code: string | undefined): string | undefined {
  return code !== undefined && PUBLIC_ERROR_CODE.test(code) ? code : undefined;
}

/** Fields in which providers put a message, apart from an object or a list with further ones. */
const MESSAGE_FIELDS = ['message', 'msg', 'err_msg', 'error', 'detail'];
/** The path of a request field, as providers write it. */
const PARAM = /^[\w.[\]-]{1,128}$/;

/** Parses the body of an error response. @returns an empty report if it is not a JSON object */
export function parseErrorReport(text: string): ErrorReport {
  try {
    return toErrorReport(JSON.parse(text));
  } catch {
    return {}; // invalid JSON
  }
}

/**
 * Reads an error in the format of OpenAI and Anthropic (`error` with message, type and code), Google (`error` with
 * status), FastAPI (`detail`, a text, an object or a list by field: DeepInfra, fal, ElevenLabs) or Deepgram (`err_code`,
 * `err_msg`), or a flat object. A router describes the type in `metadata.error_type`
 * (https://openrouter.ai/docs/api-reference/errors).
 */
export function toErrorReport(body: unknown): ErrorReport {
  if (!isJsonObject(body)) return {};
  const holder = [body.error, body.detail].flat().find(isJsonObject);
  const error: JsonObject = holder ?? body;
  const metadata = isJsonObject(error.metadata) ? error.metadata : {};
  const { code, err_code, status, loc, param } = error;
  const location = Array.isArray(loc) ? loc.filter((part) => part !== 'body').join('.') : param;
  return {
    status: typeof code === 'number' ? code : undefined,
    type: findText(error.type, metadata.error_type, typeof code === 'number' ? status : undefined, body.error_type),
    code: findText(code, err_code, typeof code === 'number' ? undefined : status, body.tag),
    message: findText(...MESSAGE_FIELDS.map((field) => error[field]), ...MESSAGE_FIELDS.map((field) => body[field])),
    param: typeof location === 'string' && PARAM.test(location) ? location : undefined,
    error,
  };
}

function findText(...values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === 'string' && value.trim() !== '');
}
