/**
 * HTTP digest authentication of `monero-wallet-rpc`. Each connection has a nonce and counts the requests since this
 * nonce was issued; every rejection replaces the nonce. Source: `http_auth.cpp` of Monero.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { type Call, HttpError } from '../router.ts';

const REALM = 'monero-rpc';
const PAGE = '<html><head><title>Unauthorized Access</title></head><body><h1>401 Unauthorized</h1></body></html>';

export class DigestLogin {
  private readonly sessions = new WeakMap<Socket, { nonce: string; count: number }>();

  constructor(
    private readonly user: string,
    private readonly password: string,
  ) {}

  /** @throws HttpError 401 unless the request proves the password with the current nonce and count of its connection */
  assert({ request: { headers, socket, method = '', url = '' } }: Call): void {
    const session = this.sessions.get(socket) ?? { nonce: '', count: 0 };
    session.count++;
    if (headers.authorization && this.isAuthenticated(headers.authorization, session, method, url)) return;
    const newSession = { nonce: randomBytes(16).toString('base64'), count: 0 };
    this.sessions.set(socket, newSession);
    const challenge = `Digest qop="auth",algorithm=MD5,realm="${REALM}",nonce="${newSession.nonce}",stale=false`;
    throw new HttpError(401, PAGE, { 'content-type': 'text/html', 'WWW-authenticate': challenge });
  }

  private isAuthenticated(
    header: string,
    { nonce, count }: { nonce: string; count: number },
    method: string,
    url: string,
  ) {
    const field = (name: string) => new RegExp(`[ ,]${name}="?([^",]*)"?`).exec(header)?.[1] ?? '';
    if (nonce === '' || field('nonce') !== nonce || Number.parseInt(field('nc'), 16) !== count) return false;
    const secret = md5(`${this.user}:${REALM}:${this.password}`);
    const what = `${nonce}:${field('nc')}:${field('cnonce')}:auth:${md5(`${method}:${field('uri')}`)}`;
    return (
      field('username') === this.user && url.endsWith(field('uri')) && field('response') === md5(`${secret}:${what}`)
    );
  }
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
