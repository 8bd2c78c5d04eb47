/**
 * The login of `monero-wallet-rpc`: HTTP digest authentication with a nonce for each connection, which counts the
 * requests that use it, and which any refusal replaces. Facts: `http_auth.cpp` of Monero.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { type Call, Refusal } from '../router.ts';

const REALM = 'monero-rpc';
const PAGE = '<html><head><title>Unauthorized Access</title></head><body><h1>401 Unauthorized</h1></body></html>';

export class DigestLogin {
  private readonly sessions = new WeakMap<Socket, { nonce: string; count: number }>();

  constructor(
    private readonly user: string,
    private readonly password: string,
  ) {}

  /** @throws Refusal */
  assert({ request: { headers, socket, method = '', url = '' } }: Call): void {
    const session = this.sessions.get(socket) ?? { nonce: '', count: 0 };
    session.count++;
    if (headers.authorization && this.isProved(headers.authorization, session, method, url)) return;
    const fresh = { nonce: randomBytes(16).toString('base64'), count: 0 };
    this.sessions.set(socket, fresh);
    const challenge = `Digest qop="auth",algorithm=MD5,realm="${REALM}",nonce="${fresh.nonce}",stale=false`;
    throw new Refusal(401, PAGE, { 'content-type': 'text/html', 'WWW-authenticate': challenge });
  }

  private isProved(header: string, { nonce, count }: { nonce: string; count: number }, method: string, url: string) {
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
