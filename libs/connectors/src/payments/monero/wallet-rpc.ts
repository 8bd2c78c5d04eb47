/**
 * JSON-RPC client for `monero-wallet-rpc`, which handles one request at a time. Each connection has its own nonce, and
 * every response with status 401 replaces it.
 * Sources: Monero's `wallet_rpc_server.cpp` and `http_auth.cpp`; tested with version 0.18.
 */
import { createCredentialError, UpstreamError } from '#application';
import { BackendHttp, type BackendResponse } from '../backend-http.ts';
import { parseExactJson } from '../exact-json.ts';
import { createDigestAuthorization, type DigestChallenge, parseDigestChallenge } from './digest.ts';

const PATH = '/json_rpc';

/** The wallet responded with an error, usually with one of Monero's `WALLET_RPC_ERROR_CODE`s. */
export class WalletRpcError extends UpstreamError {
  constructor(
    method: string,
    readonly rpcCode: unknown,
  ) {
    const reason = Object.hasOwn(REASONS, String(rpcCode)) ? `: ${REASONS[String(rpcCode)]}` : '';
    super('upstream_error', `The Monero wallet rejected ${method} with code ${Number(rpcCode)}${reason}`);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  '-7': 'it was started with --restricted-rpc',
  '-13': 'no wallet is open',
  '-15': 'it does not have an address that was issued, and may have been restored from an older copy',
  '-38': 'it cannot reach its node',
};

export class WalletRpc {
  private readonly http: BackendHttp;
  private challenge: DigestChallenge | undefined;
  private authorizationCount = 0;
  private queue: Promise<unknown> = Promise.resolve();

  constructor(
    url: string,
    private readonly getLogin: () => string | undefined,
  ) {
    this.http = new BackendHttp('The Monero wallet', url, { connections: 1 });
  }

  /** @throws WalletRpcError if the wallet responds with an error; another UpstreamError for any other failure */
  call(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const run = () => this.execute(method, params);
    const result = this.queue.then(run, run);
    this.queue = result.catch(() => {}); // the caller gets the error
    return result;
  }

  close(): Promise<void> {
    return this.http.close();
  }

  private async execute(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const { status, text } = await this.post(JSON.stringify({ jsonrpc: '2.0', id: '0', method, params }));
    if (status === 401) throw createCredentialError('The Monero wallet does not accept the login', status);
    if (status !== 200) this.http.throwStatusError(status);
    const { result, error } = this.parseResponse(text);
    if (error) throw new WalletRpcError(method, (error as { code?: unknown }).code);
    if (typeof result !== 'object' || result === null) this.http.throwUnreadable();
    return result as Readonly<Record<string, unknown>>;
  }

  /**
   * After a 401, sends the request once more with the nonce of that response. The first one may have had no nonce, or
   * that of another connection.
   */
  private async post(body: string): Promise<BackendResponse> {
    const first = await this.send(body);
    this.challenge = first.status === 401 ? parseDigestChallenge(first.headers['www-authenticate']) : this.challenge;
    if (first.status !== 401 || !this.challenge || this.getLogin() === undefined) return first;
    this.authorizationCount = 0;
    return this.send(body);
  }

  private send(body: string): Promise<BackendResponse> {
    const { challenge } = this;
    const login = this.getLogin();
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (challenge && login !== undefined) {
      headers.authorization = createDigestAuthorization(login, challenge, {
        method: 'POST',
        path: PATH,
        count: ++this.authorizationCount,
      });
    }
    return this.http.send({ method: 'POST', path: PATH, headers, body });
  }

  private parseResponse(text: string): { readonly result?: unknown; readonly error?: unknown } {
    try {
      return (parseExactJson(text) as object | null) ?? this.http.throwUnreadable();
    } catch {
      return this.http.throwUnreadable(); // invalid JSON, whose error quotes the text
    }
  }
}
