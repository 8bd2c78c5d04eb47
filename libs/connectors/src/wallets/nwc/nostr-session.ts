/**
 * One conversation with a wallet over its relays. NDK signs and encrypts. Its connections and its checks of signatures are not
 * used: it remembers for the whole process, by ids that a relay can make up, which signatures are right, and a relay that hangs
 * up at the wrong moment ends the process.
 */
import { NDKEvent, NDKPrivateKeySigner, NDKUser } from '@nostr-dev-kit/ndk';
import { type EventTemplate, type NostrEvent, verifyEvent } from 'nostr-tools/pure';
import { type WalletConnection, WalletUnreachableError } from '#application';
import { PrivateAddressError } from '../../http/public-address.ts';
import type { Nip47Response } from './nip47.ts';
import { type NostrFilter, NostrRelay } from './relay.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

const INFO_KIND = 13_194;
const REQUEST_KIND = 23_194;
const RESPONSE_KIND = 23_195;
/** Until the first relay is connected, and until one has taken an event. */
const CONNECT_TIMEOUT_MS = 6_000;
/** How long the others are waited for then: the wallet may listen to one of them alone. */
const OTHER_RELAYS_TIMEOUT_MS = 1_500;
const ACCEPT_TIMEOUT_MS = 6_000;
/** A relay says that it has understood a subscription; one that does not is written to all the same. */
const SUBSCRIBE_TIMEOUT_MS = 2_000;
const INFO_TIMEOUT_MS = 5_000;
/** Signatures that are checked for one subscription at one relay: each takes a millisecond, and one event is asked for. */
const MAX_VERIFIED_EVENTS = 5;

/** What a wallet publishes about itself. */
export interface WalletInfo {
  readonly methods: readonly string[];
  /** Undefined where it has none that is known here. */
  readonly encryption: WalletConnection['encryption'] | undefined;
}

export class NostrSession {
  private readonly relays: readonly NostrRelay[];
  private readonly signer: NDKPrivateKeySigner;
  private readonly user: NDKUser;
  private readonly rejections = new Set<string>();
  private isClosed = false;

  constructor(
    private readonly wallet: Pick<WalletConnection, 'pubkey' | 'relays' | 'secret'>,
    connectOptions: RelayConnectOptions,
  ) {
    this.signer = new NDKPrivateKeySigner(wallet.secret);
    this.user = new NDKUser({ pubkey: wallet.pubkey });
    this.relays = wallet.relays.map(
      (url) => new NostrRelay(url, connectOptions, (template) => this.signEvent(template)),
    );
    for (const { connected } of this.relays) connected.catch((error: unknown) => this.recordFailure(error));
  }

  /** @throws WalletUnreachableError when no relay can be connected to */
  async open(): Promise<void> {
    const connected = this.relays.map((relay) => relay.connected);
    try {
      await withTimeout(CONNECT_TIMEOUT_MS, Promise.any(connected));
      await withTimeout(OTHER_RELAYS_TIMEOUT_MS, Promise.allSettled(connected)).catch(() => {});
    } catch {
      throw new WalletUnreachableError([...this.rejections].join('; ') || 'no relay of the wallet can be connected to');
    }
  }

  /** @returns undefined when no relay has it */
  async fetchInfo(): Promise<WalletInfo | undefined> {
    const events: NostrEvent[] = [];
    const filter = { kinds: [INFO_KIND], authors: [this.wallet.pubkey], limit: 1 };
    const all = this.subscribe(filter, (event) => events.push(event));
    await withTimeout(INFO_TIMEOUT_MS, Promise.all(all)).catch(() => {}); // then with what has come
    const newest = events.toSorted((a, b) => b.created_at - a.created_at)[0];
    if (!newest) return undefined;
    const methods = newest.content.split(/[\s,]+/).filter((method) => method !== '');
    return { methods, encryption: selectEncryption(newest) };
  }

  /**
   * Sends a request, once, and returns when a relay has taken it.
   * @param onResponse gets each response that the wallet has signed, until the session is closed
   * @throws WalletUnreachableError when it has not left; Error when that is not known
   */
  async send(
    { method, params }: { readonly method: string; readonly params: object },
    encryption: WalletConnection['encryption'],
    onResponse: (response: Nip47Response) => void,
  ): Promise<void> {
    const event = await this.createRequest(JSON.stringify({ method, params }), encryption);
    const filter = { kinds: [RESPONSE_KIND], authors: [this.wallet.pubkey], '#e': [event.id] };
    const { promise: firstResponse, resolve: resolveFirst } = Promise.withResolvers<void>();
    const subscribed = this.subscribe(filter, async (response) => {
      const read = await this.decryptResponse(response);
      if (!read || this.isClosed) return;
      resolveFirst();
      onResponse(read);
    });
    await withTimeout(SUBSCRIBE_TIMEOUT_MS, Promise.all(subscribed)).catch(() => {});
    const publications = this.openRelays.map((relay) => relay.publish(event));
    if (publications.length === 0)
      throw new WalletUnreachableError('every relay of the wallet has ended the connection');
    const firstAccepted = withTimeout(ACCEPT_TIMEOUT_MS, Promise.any(publications)).catch(() => {
      throw new Error('no relay has said that it took the request');
    });
    await Promise.race([firstResponse, firstAccepted]);
  }

  close(): void {
    this.isClosed = true;
    for (const relay of this.relays) relay.close();
  }

  /** Connections that are lost are not made again: what is asked for is asked again, and an answer is only a hint. */
  private get openRelays(): readonly NostrRelay[] {
    return this.relays.filter((relay) => relay.isOpen);
  }

  /**
   * @param onEvent gets what the wallet has signed and the filter asks for
   * @returns for each relay, when it has understood
   */
  private subscribe(filter: NostrFilter, onEvent: (event: NostrEvent) => unknown): readonly Promise<void>[] {
    return this.openRelays.map((relay) => {
      let checked = 0;
      return relay.subscribe(filter, (event) => {
        if (this.isClosed || !isMatchingEvent(event, filter) || ++checked > MAX_VERIFIED_EVENTS) return;
        if (verifyEvent(event)) onEvent(event);
      });
    });
  }

  /** Only what we refuse is told: what a host answers to a stranger's wish is not the stranger's to know. */
  private recordFailure(error: unknown): void {
    if (error instanceof PrivateAddressError) this.rejections.add(error.message);
  }

  private async createRequest(content: string, encryption: WalletConnection['encryption']): Promise<NostrEvent> {
    const isNew = encryption === 'nip44_v2';
    const tags = [['p', this.wallet.pubkey], ...(isNew ? [['encryption', encryption]] : [])];
    const sealed = await this.signer.encrypt(this.user, content, isNew ? 'nip44' : 'nip04');
    return this.signEvent({ kind: REQUEST_KIND, created_at: Math.floor(Date.now() / 1_000), tags, content: sealed });
  }

  private async signEvent(template: EventTemplate): Promise<NostrEvent> {
    const event = new NDKEvent(undefined, template);
    await event.sign(this.signer);
    return event.rawEvent() as NostrEvent;
  }

  /** @returns undefined for what cannot be decrypted, or is no object */
  private async decryptResponse({ content }: NostrEvent): Promise<Nip47Response | undefined> {
    try {
      const scheme = content.includes('?iv=') ? 'nip04' : 'nip44';
      const response: unknown = JSON.parse(await this.signer.decrypt(this.user, content, scheme));
      return typeof response === 'object' && response !== null ? response : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Its signature is not checked here. */
function isMatchingEvent(event: unknown, { kinds, authors, '#e': requests }: NostrFilter): event is NostrEvent {
  if (typeof event !== 'object' || event === null) return false;
  const { kind, pubkey, tags } = event as Partial<Record<keyof NostrEvent, unknown>>;
  if (typeof kind !== 'number' || typeof pubkey !== 'string' || !Array.isArray(tags)) return false;
  if (!kinds.includes(kind) || !authors.includes(pubkey)) return false;
  return !requests || tags.some((tag) => Array.isArray(tag) && tag[0] === 'e' && requests.includes(tag[1]));
}

/** Wallets that say nothing of it are old. */
function selectEncryption({ tags }: NostrEvent): WalletInfo['encryption'] {
  const tag = tags.find(([name]) => name === 'encryption');
  const schemes = (tag?.[1] ?? '').split(/[\s,]+/);
  if (schemes.includes('nip44_v2')) return 'nip44_v2';
  return tag === undefined || schemes.includes('nip04') ? 'nip04' : undefined;
}

/** @throws Error when it takes longer */
function withTimeout<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`it took more than ${milliseconds} ms`)), milliseconds);
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
