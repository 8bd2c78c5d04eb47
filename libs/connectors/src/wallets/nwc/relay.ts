/** A relay, by NIP-01 and NIP-42. Whatever it says, nothing is thrown, and what makes no sense is not heard. */
import { randomUUID } from 'node:crypto';
import type { EventTemplate, NostrEvent } from 'nostr-tools/pure';
import type { RelayConnectOptions } from './relay-connect.ts';
import { RelaySocket } from './relay-socket.ts';

const AUTH = 22_242;
/** A relay says who it is asked by once, and perhaps once more. */
const MAX_CHALLENGES = 2;
const MAX_CHALLENGE_LENGTH = 1_024;

export interface Filter {
  readonly kinds: readonly number[];
  readonly authors: readonly string[];
  readonly '#e'?: readonly string[];
  readonly limit?: number;
}

/** What a relay has been sent, and has not answered so far. */
interface Sent {
  readonly message: string;
  /** It is sent again when the relay knows who asks. */
  waits: boolean;
  readonly answer: (taken: boolean) => void;
}

export class NostrRelay {
  /** Resolved when it is connected to. @throws Error when that fails, or it is closed before */
  readonly connected: Promise<void>;
  private readonly socket: RelaySocket | undefined;
  /** By the names of subscriptions, and the ids of events. */
  private readonly sent = new Map<string, Sent>();
  private readonly listeners = new Map<string, (event: unknown) => void>();
  private challenges = 0;
  private isKnownTo = false;

  /** @param sign signs in the name of who asks */
  constructor(
    private readonly url: string,
    dialling: RelayConnectOptions,
    private readonly sign: (template: EventTemplate) => Promise<NostrEvent>,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => {}); // who asks for it handles it
    this.connected = promise;
    const ended = (error = new Error('the relay has ended the connection')) => {
      reject(error);
      for (const name of [...this.sent.keys()]) this.answered(name, false);
    };
    try {
      this.socket = new RelaySocket(url, dialling, { opened: resolve, said: (text) => this.hear(text), ended });
    } catch (error) {
      ended(error as Error);
    }
  }

  get isOpen(): boolean {
    return this.socket?.isOpen ?? false;
  }

  /** @returns when the relay has sent what it has, or will send nothing */
  async subscribe(filter: Filter, hear: (event: unknown) => void): Promise<void> {
    const name = randomUUID();
    this.listeners.set(name, hear);
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
    return new Promise((answer) => {
      if (!this.isOpen) return answer(false);
      const sent = { message: JSON.stringify(message), waits: false, answer };
      this.sent.set(name, sent);
      this.socket?.send(sent.message);
    });
  }

  private hear(text: string): void {
    const [kind, name, third, fourth] = listIn(text);
    if (typeof name !== 'string') return;
    if (kind === 'AUTH') void this.identify(name);
    if (kind === 'EVENT') this.listeners.get(name)?.(third);
    if (kind === 'EOSE') this.answered(name, true);
    if (kind === 'OK') this.decided(name, third === true, fourth);
    if (kind === 'CLOSED') this.decided(name, false, third);
  }

  private decided(name: string, taken: boolean, why: unknown): void {
    const sent = this.sent.get(name);
    const mayBeTaken = typeof why === 'string' && why.startsWith('auth-required:') && !this.isKnownTo;
    if (sent && !taken && mayBeTaken) sent.waits = true;
    else this.answered(name, taken);
  }

  private answered(name: string, taken: boolean): void {
    const sent = this.sent.get(name);
    this.sent.delete(name);
    sent?.answer(taken);
  }

  private async identify(challenge: string): Promise<void> {
    if (challenge.length > MAX_CHALLENGE_LENGTH || ++this.challenges > MAX_CHALLENGES) return;
    const tags = [
      ['relay', this.url],
      ['challenge', challenge],
    ];
    const event = await this.sign({ kind: AUTH, created_at: Math.floor(Date.now() / 1_000), tags, content: '' });
    this.identified(await this.send(event.id, ['AUTH', event]));
  }

  private identified(known: boolean): void {
    this.isKnownTo ||= known;
    for (const [name, sent] of [...this.sent]) {
      if (!sent.waits) continue;
      sent.waits = false;
      if (known) this.socket?.send(sent.message);
      else this.answered(name, false);
    }
  }
}

/** @returns an empty list for what is none */
function listIn(text: string): readonly unknown[] {
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}
