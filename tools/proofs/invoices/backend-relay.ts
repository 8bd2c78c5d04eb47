/** An HTTP relay between the programs and the payment backends of the sandbox. */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Records when each payment backend is polled, and can report one transaction as another. */
export class BackendRelay {
  readonly polls: Readonly<Record<'btc-lightning' | 'btc', number[]>> = { 'btc-lightning': [], btc: [] };
  /** The transaction id that BTCPay reports instead of another one. */
  private readonly transactions = new Map<string, string>();

  private constructor(
    readonly url: string,
    readonly close: () => void,
  ) {}

  static async start(sandbox: string): Promise<BackendRelay> {
    const server = createServer((incoming, outgoing) => {
      const { method, headers, url = '' } = incoming;
      relay.count(method ?? '', url);
      const upstreamRequest = forward(`${sandbox}${url}`, { method, headers }, (upstreamResponse) =>
        relay.respond(url, upstreamResponse, outgoing),
      );
      upstreamRequest.on('error', () => outgoing.destroy());
      outgoing.on('close', () => upstreamRequest.destroy());
      incoming.pipe(upstreamRequest);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const relay = new BackendRelay(url, () => {
      server.close();
      server.closeAllConnections();
    });
    return relay;
  }

  /** From now on, BTCPay reports the transaction `txid` as `other`, also if that one has paid another invoice. */
  reportAs(txid: string, other: string): void {
    this.transactions.set(txid, other);
  }

  /** Returns the maximum number of polls within any interval of one second. */
  getMaxPerSecond(method: 'btc-lightning' | 'btc'): number {
    const times = this.polls[method];
    let first = 0;
    return times.reduce((max, at, i) => {
      while ((times[first] as number) <= at - 1_000) first++;
      return Math.max(max, i - first + 1);
    }, 0);
  }

  private count(method: string, url: string): void {
    if (method !== 'GET') return;
    if (/^\/lnd\/v1\/invoice\//.test(url)) this.polls['btc-lightning'].push(performance.now());
    if (/^\/btcpay\/.*\/(invoices\?|payment-methods\?only)/.test(url)) this.polls.btc.push(performance.now());
  }

  private async respond(url: string, upstreamResponse: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { statusCode = 502, headers } = upstreamResponse;
    if (this.transactions.size === 0 || !url.startsWith('/btcpay/')) {
      outgoing.writeHead(statusCode, headers);
      upstreamResponse.pipe(outgoing);
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of upstreamResponse) chunks.push(chunk as Buffer);
    let text = Buffer.concat(chunks).toString();
    for (const [txid, other] of this.transactions) text = text.replaceAll(txid, other);
    outgoing.writeHead(statusCode, headers);
    outgoing.end(text);
  }
}
