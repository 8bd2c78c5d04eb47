interface ProxyErrorDetails {
  /** Error code for programs. */
  readonly code?: string;
  /** Replaces `code` in the log if the enclave chose it, because such a code can contain text of the request. */
  readonly logCode?: string;
  /** OpenAI's error type, if it does not follow from the status. */
  readonly type?: string;
  /** The invalid field of the request. */
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  /** Clients must not retry automatically: the request may have been charged, or a retry would fail as well. */
  readonly isFinal?: boolean;
  /** The amounts, if the gateway stated them in a rejection for lack of money. */
  readonly money?: MoneyDetails;
  /** The gateway's id of the request. */
  readonly requestId?: string;
}

/** The money that the request requires, and the money that is available for it, in decimal USD. */
export interface MoneyDetails {
  readonly required: string;
  readonly affordable: string;
}

/**
 * A request was rejected, or got no response or only a part of one. The message is only for the caller, because it may
 * quote the gateway or the enclave. The log gets `logCode`, and the status of the response: 200 if its stream had
 * already started.
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

export const INCOMPLETE_RESPONSE = 'answer_broken';

export const UNEXPECTED_ERROR = new ProxyError(500, 'The proxy failed', { code: 'internal_error' });

const MAX_DISPLAY_CHARACTERS = 500;
const IDENTIFIER = /^\w{1,64}$/;
const USD = /^\d{1,15}(\.\d{1,12})?$/;

/** Makes untrusted text safe to display: truncates it, and replaces characters that could control a terminal. */
export function sanitizeForDisplay(text: string): string {
  return text
    .slice(0, MAX_DISPLAY_CHARACTERS)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
}

/** Parses an error in OpenAI's format or a common variant. @returns undefined if the body has no error message */
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

/** Parses the amounts in a rejection for lack of money. @returns undefined if there are none */
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
