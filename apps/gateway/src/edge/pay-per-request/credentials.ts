/**
 * Parses the credential of a paying caller from the headers alone. The credential must not be logged: a preimage is
 * worth money.
 *
 * The `Payment` scheme sends `Payment <base64url of JSON>`. L402 sends `L402|LSAT <token>:<preimage>`; the id of the
 * challenge may replace the token.
 */
import type { FastifyRequest } from 'fastify';
import type { PresentedProof } from '#application';

/** Headers that name the key of an account, whatever their value. */
const KEY_HEADERS = ['x-api-key', 'api-key'];
/** Headers that name an account or one of its keys. */
export const ACCOUNT_HEADERS = [...KEY_HEADERS, 'x-credit-id'];
/** Separates several credentials in one line, because a proxy may combine two headers. */
const CREDENTIAL_SEPARATOR = /,\s*(?=(?:payment|l402|lsat)\s)/i;
const CREDENTIAL_PATTERN = /^(payment|l402|lsat) +(\S.*)$/is;
const L402_PATTERN = /^(?<tokens>[^:\s]+):(?<preimage>[0-9a-f]{64})$/i;
const PREIMAGE = /^[0-9a-f]{64}$/;
const BASE64URL = /^([\w-]*)(={0,2})$/;
/** Fields of a challenge that clients send back in addition to `id`; the specification has no others. */
const CHALLENGE_FIELDS = [
  'realm',
  'method',
  'intent',
  'request',
  'expires',
  'digest',
  'opaque',
  'description',
] as const;

/**
 * A proof; `account` for the credential of an account, valid or not; `none` without a credential; or `malformed` for a
 * proof that cannot be parsed. The credential of an account takes precedence over any proof.
 */
export type PresentedCredential = PresentedProof | 'account' | 'none' | 'malformed';

/** Parses the credential of a request, without checking whether it is valid. */
export function parseCredential({ headers, raw }: FastifyRequest): PresentedCredential {
  if (KEY_HEADERS.some((name) => name in headers) || headers['x-credit-id']) return 'account';
  // Some clients send the same proof under two schemes, in two headers: `headers` has only the first.
  const lines = raw.headersDistinct.authorization?.flatMap((line) => line.split(CREDENTIAL_SEPARATOR)) ?? [];
  if (lines.length === 0) return 'none';
  const parts = lines.map((line) => CREDENTIAL_PATTERN.exec(line.trim()));
  if (parts.some((part) => part === null)) return lines.every(isProofCredential) ? 'malformed' : 'account';
  const proofs = parts.map((part) => parseProof(part?.[1] ?? '', part?.[2] ?? ''));
  return proofs.find((proof) => proof !== undefined) ?? 'malformed';
}

/** Whether a line names a scheme of proofs, whatever follows. */
function isProofCredential(line: string): boolean {
  return /^(payment|l402|lsat)(\s|$)/i.test(line.trim());
}

function parseProof(scheme: string, credential: string): PresentedProof | undefined {
  return scheme.toLowerCase() === 'payment' ? parsePaymentCredential(credential) : parseL402Credential(credential);
}

function parseL402Credential(credential: string): PresentedProof | undefined {
  const { tokens, preimage } = L402_PATTERN.exec(credential.trim().replace(/\s*([,:])\s*/g, '$1'))?.groups ?? {};
  if (tokens === undefined || preimage === undefined) return undefined;
  return { challenge: { tokens: tokens.split(',') }, preimage: preimage.toLowerCase() };
}

function parsePaymentCredential(credential: string): PresentedProof | undefined {
  const { challenge, payload } = toObject(parseJson(decodeBase64Url(credential.trim()))) ?? {};
  const { id, ...echoed } = toObject(challenge) ?? {};
  const { preimage } = toObject(payload) ?? {};
  if (typeof id !== 'string' || typeof preimage !== 'string' || !PREIMAGE.test(preimage)) return undefined;
  const members = CHALLENGE_FIELDS.filter((name) => echoed[name] !== undefined).map(
    (name) => [name, echoed[name]] as const,
  );
  if (!members.every(([, value]) => typeof value === 'string')) return undefined;
  return { challenge: { id, ...Object.fromEntries(members) }, preimage };
}

/**
 * Decodes base64url with or without padding. Apart from that, bytes have only one valid encoding: input that a lenient
 * decoder would ignore, such as bits after the last byte, is rejected.
 */
function decodeBase64Url(text: string): Buffer | undefined {
  const [, digits = '', padding = ''] = BASE64URL.exec(text) ?? [];
  if (digits === '' || (padding !== '' && text.length % 4 !== 0)) return undefined;
  const bytes = Buffer.from(digits, 'base64url');
  return bytes.toString('base64url') === digits ? bytes : undefined;
}

function parseJson(bytes: Buffer | undefined): unknown {
  try {
    return bytes && JSON.parse(bytes.toString());
  } catch {
    return undefined; // treated as malformed
  }
}

function toObject(value: unknown): Readonly<Record<string, unknown>> | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as Record<string, unknown>) : undefined;
}
