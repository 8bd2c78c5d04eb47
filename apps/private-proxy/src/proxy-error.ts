interface ProxyErrorDetails {
  /** What is wrong, in a word for programs. */
  readonly code?: string;
  /** The word for the log, where the code is one of the enclave's: it may be one of the request. */
  readonly logCode?: string;
  /** The kind of error in OpenAI's words, where that does not follow from the status. */
  readonly type?: string;
  /** The field of the request that is at fault. */
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  /** The request was perhaps served, and paid: whoever repeats it by himself pays again. */
  readonly isFinal?: boolean;
  /** What there was too little money for, and what there is. */
  readonly money?: MoneyDetails;
  /** The gateway's id of the request. */
  readonly requestId?: string;
}

/** Decimal USD. */
export interface MoneyDetails {
  readonly required: string;
  readonly affordable: string;
}

/**
 * Why there is no answer, or no end of one. The message is for the caller alone and may have words of the gateway or of the
 * enclave: of a failure nothing is logged but its status and a word of ours, or of the gateway's.
 */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly status: number;
  readonly code: string;
  readonly logCode: string;
  readonly type: string | undefined;
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;
  readonly isFinal: boolean;
  readonly money: MoneyDetails | undefined;
  readonly requestId: string | undefined;

  constructor(status: number, message: string, details: ProxyErrorDetails = {}) {
    super(message);
    const { code, logCode, type, param, retryAfterSeconds, isFinal, money, requestId } = details;
    this.status = status;
    this.code = code ?? (status < 500 ? 'invalid_request' : 'proxy_error');
    this.logCode = logCode ?? this.code;
    this.type = type;
    this.param = param ?? null;
    this.retryAfterSeconds = retryAfterSeconds;
    this.isFinal = isFinal ?? false;
    this.money = money;
    this.requestId = requestId;
  }
}

/** The code of an answer that is not whole. */
export const INCOMPLETE_RESPONSE = 'answer_broken';

export const UNEXPECTED_ERROR = new ProxyError(500, 'The proxy failed', { code: 'internal_error' });

const MAX_DISPLAY_CHARACTERS = 500;
const IDENTIFIER = /^\w{1,64}$/;
const USD = /^\d{1,15}(\.\d{1,12})?$/;

/** What somebody says who is not trusted, fit to be shown. */
export function sanitizeForDisplay(text: string): string {
  return text
    .slice(0, MAX_DISPLAY_CHARACTERS)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
}

/** What an error in OpenAI's shape, or in one of those that are around, says; undefined of what is none. */
export function parseErrorBody(
  body: unknown,
): ({ readonly message: string } & Pick<ProxyErrorDetails, 'type' | 'code'>) | undefined {
  const { error, message } = toRecord(body);
  const { message: inner, type, code } = toRecord(error);
  const messageText = [inner, message, error].find((candidate) => typeof candidate === 'string' && candidate !== '');
  if (messageText === undefined) return undefined;
  return {
    message: sanitizeForDisplay(messageText as string),
    ...(isIdentifier(type) ? { type } : {}),
    ...(isIdentifier(code) ? { code } : {}),
  };
}

/** What the gateway says of money, where it refuses for want of it. */
export function parseMoneyDetails(body: unknown): MoneyDetails | undefined {
  const { required, affordable } = toRecord(toRecord(toRecord(body).error).metadata);
  return isUsd(required) && isUsd(affordable) ? { required, affordable } : undefined;
}

function isUsd(value: unknown): value is string {
  return typeof value === 'string' && USD.test(value);
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && IDENTIFIER.test(value);
}
