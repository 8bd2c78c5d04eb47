/**
 * A client for one relay (NIP-01, NIP-42). No message of a relay can make it throw, and invalid messages are ignored.
 */
import { randomUUID } from 'node:crypto';
import type { EventTemplate, NostrEvent } from 'nostr-tools/pure';
import type { RelayConnectOptions } from './relay-connect.ts';
import { RelaySocket } from './relay-socket.ts';

const AUTH_KIND = 22_242;
/** Relays send one authentication challenge, sometimes two. Further ones are ignored. */
const MAX_CHALLENGES = 2;
const MAX_CHALLENGE_LENGTH = 1_024;

export interface NostrFilter {
  readonly kinds: readonly number[];
  readonly authors: readonly string[];
  readonly '#e'?: readonly string[];
  readonly limit?: number;
}

/** A sent message without a response so far. */
interface PendingMessage {
  readonly message: string;
  /** The message is sent again if the relay accepts the authentication. */
  isAwaitingAuth: boolean;
  readonly resolve: (accepted: boolean) => void;
}

export class NostrRelay {
  /** Resolves when the connection is open. Rejects if it fails or is closed before. */
  readonly connected: Promise<void>;
  private readonly socket: RelaySocket | undefined;
  /** By subscription name or event id. */
  private readonly pendingMessages = new Map<string, PendingMessage>();
  private readonly listeners = new Map<string, (event: unknown) => void>();
  private challenges = 0;
  private isAuthenticated = false;

  /** @param sign signs an event with the client's key */
  constructor(
    private readonly url: string,
    connectOptions: RelayConnectOptions,
    private readonly sign: (template: EventTemplate) => Promise<NostrEvent>,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => {}); // callers handle the rejection
    this.connected = promise;
    const onEnd = (error = new Error('the relay has closed the connection')) => {
      reject(error);
      for (const name of [...this.pendingMessages.keys()]) this.resolveSent(name, false);
    };
    try {
      this.socket = new RelaySocket(url, connectOptions, {
        onOpen: resolve,
        onMessage: (text) => this.handleMessage(text),
        onEnd,
      });
    } catch (error) {
      onEnd(error as Error);
    }
  }

  get isOpen(): boolean {
    return this.socket?.isOpen ?? false;
  }

  /** Resolves when the relay has sent all stored events or has ended the subscription, or the connection ends. */
  async subscribe(filter: NostrFilter, onEvent: (event: unknown) => void): Promise<void> {
    const name = randomUUID();
    this.listeners.set(name, onEvent);
    await this.send(name, ['REQ', name, filter]);
  }

  /** @throws Error if the relay does not accept the event */
  async publish(event: NostrEvent): Promise<void> {
    if (!(await this.send(event.id, ['EVENT', event]))) throw new Error('the relay has not accepted the event');
  }

  close(): void {
    this.socket?.close();
    this.listeners.clear();
  }

  private send(name: string, message: readonly unknown[]): Promise<boolean> {
    return new Promise((resolve) => {
      if (!this.isOpen) return resolve(false);
      const sent = { message: JSON.stringify(message), isAwaitingAuth: false, resolve };
      this.pendingMessages.set(name, sent);
      this.socket?.send(sent.message);
    });
  }

  private handleMessage(text: string): void {
    const [kind, name, third, fourth] = parseList(text);
    if (typeof name !== 'string') return;
    if (kind === 'AUTH') void this.authenticate(name);
    if (kind === 'EVENT') this.listeners.get(name)?.(third);
    if (kind === 'EOSE') this.resolveSent(name, true);
    if (kind === 'OK') this.handleResult(name, third === true, fourth);
    if (kind === 'CLOSED') this.handleResult(name, false, third);
  }

  private handleResult(name: string, accepted: boolean, reason: unknown): void {
    const sent = this.pendingMessages.get(name);
    const canAuthenticate = typeof reason === 'string' && reason.startsWith('auth-required:') && !this.isAuthenticated;
    if (sent && !accepted && canAuthenticate) sent.isAwaitingAuth = true;
    else this.resolveSent(name, accepted);
  }

  private resolveSent(name: string, accepted: boolean): void {
    const sent = this.pendingMessages.get(name);
    this.pendingMessages.delete(name);
    sent?.resolve(accepted);
  }

  private async authenticate(challenge: string): Promise<void> {
    if (challenge.length > MAX_CHALLENGE_LENGTH || ++this.challenges > MAX_CHALLENGES) return;
    const tags = [
      ['relay', this.url],
      ['challenge', challenge],
    ];
    const event = await this.sign({ kind: AUTH_KIND, created_at: Math.floor(Date.now() / 1_000), tags, content: '' });
    this.completeAuthentication(await this.send(event.id, ['AUTH', event]));
  }

  private completeAuthentication(isAccepted: boolean): void {
    this.isAuthenticated ||= isAccepted;
    for (const [name, sent] of [...this.pendingMessages]) {
      if (!sent.isAwaitingAuth) continue;
      sent.isAwaitingAuth = false;
      if (isAccepted) this.socket?.send(sent.message);
      else this.resolveSent(name, false);
    }
  }
}

/** Parses a JSON list. @returns an empty list for anything else */
function parseList(text: string): readonly unknown[] {
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : [];
  } catch {
    return []; // invalid JSON
  }
}
