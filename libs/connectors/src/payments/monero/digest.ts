/**
 * HTTP digest authentication (RFC 7616), as far as `monero-wallet-rpc --rpc-login` requires it: MD5 with `qop=auth`.
 * The password itself is never sent.
 */
import { createHash, randomBytes } from 'node:crypto';

export interface DigestChallenge {
  readonly realm: string;
  readonly nonce: string;
}

/**
 * Parses the first supported challenge.
 * @param headers values of `WWW-Authenticate`, one challenge each
 * @returns undefined if no challenge is supported
 */
export function parseDigestChallenge(headers: string | readonly string[] | undefined): DigestChallenge | undefined {
  for (const header of [headers ?? []].flat()) {
    const fields = parseDigestFields(header);
    const { realm, nonce, algorithm = 'MD5', qop = '' } = fields;
    if (realm !== undefined && nonce && algorithm.toUpperCase() === 'MD5' && qop.split(/, */).includes('auth')) {
      return { realm, nonce };
    }
  }
  return undefined;
}

/**
 * Returns the value of the `Authorization` header.
 * @param login `user:password`
 * @param count number of requests with this nonce, including this one
 */
export function createDigestAuthorization(
  login: string,
  { realm, nonce }: DigestChallenge,
  { method, path, count, cnonce = randomBytes(16).toString('hex') }: DigestCredentials,
): string {
  const colon = login.indexOf(':');
  const [user, password] = [login.slice(0, colon), login.slice(colon + 1)];
  const nc = count.toString(16).padStart(8, '0');
  const secret = md5(`${user}:${realm}:${password}`);
  const response = md5(`${secret}:${nonce}:${nc}:${cnonce}:auth:${md5(`${method}:${path}`)}`);
  const quoted = { username: user, realm, nonce, uri: path, response, cnonce };
  const parameters = Object.entries(quoted).map(([name, value]) => `${name}="${value.replace(/["\\]/g, '\\$&')}"`);
  return `Digest ${parameters.join(', ')}, algorithm=MD5, qop=auth, nc=${nc}`;
}

export interface DigestCredentials {
  readonly method: string;
  readonly path: string;
  readonly count: number;
  /** Only set by tests. */
  readonly cnonce?: string;
}

function parseDigestFields(header: string): Readonly<Record<string, string | undefined>> {
  if (!/^digest /i.test(header)) return {};
  const matches = header.matchAll(/([a-z]+)=(?:"((?:[^"\\]|\\.)*)"|([^",\s]+))/gi);
  return Object.fromEntries(
    [...matches].map(([, name = '', quoted, bare]) => [name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? bare]),
  );
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
