/** An HTTP server that forwards requests with an accepted credential, and responds with 401 to others. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface TlsCertificate {
  readonly cert: string;
  readonly key: string;
}

export class CredentialGuard {
  private readonly targets = new Map<string, string>();
  private readonly servedCounts = new Map<string, number>();
  rejectedCount = 0;
  private readonly server: ReturnType<typeof createServer> | Server;

  /** @param header its value contains the credential */
  constructor(
    private readonly header: string,
    private readonly certificate?: TlsCertificate,
  ) {
    const handle = (incoming: IncomingMessage, outgoing: ServerResponse) => this.handle(incoming, outgoing);
    this.server = certificate ? createTlsServer(certificate, handle) : createServer(handle);
  }

  /** @returns the address */
  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `${this.certificate ? 'https' : 'http'}://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** @param target the address to which requests with the credential are forwarded */
  accept(credential: string, target: string): void {
    this.targets.set(credential, target);
  }

  revoke(credential: string): void {
    this.targets.delete(credential);
  }

  /** Uses another certificate for new connections. */
  useCertificate(certificate: TlsCertificate): void {
    (this.server as Server).setSecureContext(certificate);
  }

  /** Returns the number of forwarded requests with the credential. */
  countServed(credential: string): number {
    return this.servedCounts.get(credential) ?? 0;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private handle(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const value = String(incoming.headers[this.header]);
    const [credential, target] = [...this.targets].find(([accepted]) => value.includes(accepted)) ?? [];
    if (credential === undefined) {
      this.rejectedCount++;
      outgoing.writeHead(401).end('{}');
      return;
    }
    this.servedCounts.set(credential, this.countServed(credential) + 1);
    const { method = '', url, headers } = incoming;
    // A connection of its own cannot be one that the server is closing because it was idle.
    const forwarded = request(`${target}${url}`, { method, headers, agent: false }, (response) => {
      // Every request makes a connection of its own, so that a changed certificate applies to the next one.
      outgoing.writeHead(response.statusCode ?? 502, { ...response.headers, connection: 'close' });
      response.pipe(outgoing).once('close', () => response.destroy());
    });
    forwarded.once('error', (error) => {
      if (!outgoing.destroyed) process.stderr.write(`${target}${url}: ${error}\n`);
      outgoing.destroy();
    });
    outgoing.once('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
  }
}
