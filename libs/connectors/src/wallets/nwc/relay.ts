/** A relay, by NIP-01 and NIP-42. Whatever it says, nothing is thrown, and what makes no sense is not heard. */
import { randomUUID } from 'node:crypto';
import type { EventTemplate, NostrEvent } from 'nostr-tools/pure';
import type { RelayConnectOptions } from './relay-connect.ts';
import { RelaySocket } from './relay-socket.ts';

const AUTH_KIND = 22_242;
/** A relay says who it is asked by once, and perhaps once more. */
const MAX_CHALLENGES = 2;
const MAX_CHALLENGE_LENGTH = 1_024;

export interface NostrFilter {
  readonly kinds: readonly number[];
  readonly authors: readonly string[];
  readonly '#e'?: readonly string[];
  readonly limit?: number;
}

/** What a relay has been sent, and has not answered so far. */
interface PendingMessage {
  readonly message: string;
  /** It is sent again when the relay knows who asks. */
  isAwaitingAuth: boolean;
  readonly resolve: (accepted: boolean) => void;
}

export class NostrRelay {
  /** Resolved when it is connected to. @throws Error when that fails, or it is closed before */
  readonly connected: Promise<void>;
  private readonly socket: RelaySocket | undefined;
  /** By the names of subscriptions, and the ids of events. */
  private readonly pendingMessages = new Map<string, PendingMessage>();
  private readonly listeners = new Map<string, (event: unknown) => void>();
  private challenges = 0;
  private isAuthenticated = false;

  /** @param sign signs in the name of who asks */
  constructor(
    private readonly url: string,
    connectOptions: RelayConnectOptions,
    private readonly sign: (template: EventTemplate) => Promise<NostrEvent>,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => {}); // who asks for it handles it
    this.connected = promise;
    const onEnd = (error = new Error('the relay has ended the connection')) => {
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

  /** @returns when the relay has sent what it has, or will send nothing */
  async subscribe(filter: NostrFilter, onEvent: (event: unknown) => void): Promise<void> {
    const name = randomUUID();
    this.listeners.set(name, onEvent);
    await this.send(name, ['REQ', name, filter]);
  }

  /** @throws Error when the relay does not take it */
  async publish(event: NostrEvent): Promise<void> {
    if (!(await this.send(event.id, ['EVENT', event]))) throw new Error('the relay has not taken it');
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

/** @returns an empty list for what is none */
function parseList(text: string): readonly unknown[] {
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}
