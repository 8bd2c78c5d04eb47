interface FailureDetails {
  /** What is wrong, in a word for programs. */
  readonly code?: string;
  /** The kind of error in OpenAI's words, where that does not follow from the status. */
  readonly type?: string;
  /** The field of the request that is at fault. */
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  /** An answer had begun, and was perhaps paid: whoever repeats the request by himself pays again. */
  readonly final?: boolean;
}

/**
 * Why there is no answer, or no end of one. The message is for the caller alone and may have words of the gateway or of the
 * enclave: of a failure nothing is logged but its status and its code.
 */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly status: number;
  readonly code: string;
  readonly type: string | undefined;
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;
  readonly final: boolean;

  constructor(status: number, message: string, { code, type, param, retryAfterSeconds, final }: FailureDetails = {}) {
    super(message);
    this.status = status;
    this.code = code ?? (status < 500 ? 'invalid_request' : 'proxy_error');
    this.type = type;
    this.param = param ?? null;
    this.retryAfterSeconds = retryAfterSeconds;
    this.final = final ?? false;
  }
}

export const UNEXPECTED = new Failure(500, 'The proxy failed', { code: 'internal_error' });

const SHOWN_CHARACTERS = 500;
const WORD = /^\w{1,64}$/;

/** What somebody says who is not trusted, fit to be shown. */
export function shown(text: string): string {
  return text
    .slice(0, SHOWN_CHARACTERS)
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
}

/** What an error in OpenAI's shape, or in one of those that are around, says; undefined of what is none. */
export function errorIn(
  body: unknown,
): { readonly message: string; readonly type?: string; readonly code?: string } | undefined {
  const { error, message } = fieldsOf(body);
  const { message: inner, type, code } = fieldsOf(error);
  const said = [inner, message, error].find((each) => typeof each === 'string' && each !== '');
  if (said === undefined) return undefined;
  return { message: shown(said as string), ...(isWord(type) ? { type } : {}), ...(isWord(code) ? { code } : {}) };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && WORD.test(value);
}
