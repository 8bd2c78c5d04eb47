/**
 * One session with a wallet over its relays. NDK only signs, encrypts and decrypts. NDK's connections are not used,
 * because a relay that disconnects at a bad time can crash the process. NDK's signature checks are not used, because
 * they cache valid signatures in the process by event id, and a relay can choose ids.
 */

import { NDKEvent, NDKPrivateKeySigner, NDKUser } from '@nostr-dev-kit/ndk';
import { type EventTemplate, type NostrEvent, verifyEvent } from 'nostr-tools/pure';
import { type WalletConnection, WalletUnreachableError } from '#application';
import { withTimeout } from '#kernel';
import { nodeTimers } from '#runtime';
import { PrivateAddressError } from '../../http/public-address.ts';
import type { Nip47Response } from './nip47.ts';
import { type NostrFilter, NostrRelay } from './relay.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

const INFO_KIND = 13_194;
const REQUEST_KIND = 23_194;
const RESPONSE_KIND = 23_195;
/** Maximum time until the first relay is connected. */
const CONNECT_TIMEOUT_MS = 6_000;
/** How long the other relays are then waited for. The wallet may be connected to only one relay. */
const OTHER_RELAYS_TIMEOUT_MS = 1_500;
/** Maximum time until a relay has accepted an event. */
const ACCEPT_TIMEOUT_MS = 6_000;
/** How long a relay may take to confirm a subscription. After that, the request is sent anyway. */
const SUBSCRIBE_TIMEOUT_MS = 2_000;
const INFO_TIMEOUT_MS = 5_000;
/**
 * Maximum number of signatures checked per subscription and relay. Each takes a millisecond, and one event is expected.
 */
const MAX_VERIFIED_EVENTS = 5;

/** The info event of a wallet (NIP-47). */
export interface WalletInfo {
  readonly methods: readonly string[];
  /** Undefined if the wallet supports no known encryption. */
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

  /** @throws WalletUnreachableError if no relay is reachable */
  async open(): Promise<void> {
    const connected = this.relays.map((relay) => relay.connected);
    try {
      await withTimeout(nodeTimers, CONNECT_TIMEOUT_MS, Promise.any(connected), throwTimeout);
      // one relay is sufficient
      await withTimeout(nodeTimers, OTHER_RELAYS_TIMEOUT_MS, Promise.allSettled(connected), () => {});
    } catch {
      throw new WalletUnreachableError([...this.rejections].join('; ') || 'no relay of the wallet is reachable');
    }
  }

  /** @returns undefined if no relay has sent the info event in time */
  async fetchInfo(): Promise<WalletInfo | undefined> {
    const events: NostrEvent[] = [];
    const filter = { kinds: [INFO_KIND], authors: [this.wallet.pubkey], limit: 1 };
    const all = this.subscribe(filter, (event) => events.push(event));
    await withTimeout(nodeTimers, INFO_TIMEOUT_MS, Promise.all(all), throwTimeout).catch(() => {}); // after the timeout: use what has arrived
    const newest = events.toSorted((a, b) => b.created_at - a.created_at)[0];
    if (!newest) return undefined;
    const methods = newest.content.split(/[\s,]+/).filter((method) => method !== '');
    return { methods, encryption: selectEncryption(newest) };
  }

  /**
   * Sends a request to each connected relay. Resolves when a relay has accepted it or the wallet has responded.
   * @param onResponse called for each response that the wallet has signed and that can be decrypted, once per relay
   * that delivers it, until the session is closed
   * @throws WalletUnreachableError if the request was not sent; Error if it may have been sent
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
    await withTimeout(nodeTimers, SUBSCRIBE_TIMEOUT_MS, Promise.all(subscribed), throwTimeout).catch(() => {}); // one relay is sufficient
    const publications = this.openRelays.map((relay) => relay.publish(event));
    if (publications.length === 0)
      throw new WalletUnreachableError('every relay of the wallet has closed the connection');
    const firstAccepted = withTimeout(nodeTimers, ACCEPT_TIMEOUT_MS, Promise.any(publications), throwTimeout).catch(
      () => {
        throw new Error('no relay has confirmed the request');
      },
    );
    await Promise.race([firstResponse, firstAccepted]);
  }

  close(): void {
    this.isClosed = true;
    for (const relay of this.relays) relay.close();
  }

  /** Lost connections are not restored, because callers can repeat their requests. */
  private get openRelays(): readonly NostrRelay[] {
    return this.relays.filter((relay) => relay.isOpen);
  }

  /**
   * @param onEvent called for each event that matches the filter and has a valid signature of the wallet; only the
   * first `MAX_VERIFIED_EVENTS` matches of a relay are verified
   * @returns a promise for each connected relay, which resolves when the relay has confirmed or ended the subscription,
   * or the connection has ended
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

  /** Records only the gateway's own rejections. Third parties must not learn how a host that they named responded. */
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

  /** @returns undefined if the content cannot be decrypted or is not an object */
  private async decryptResponse({ content }: NostrEvent): Promise<Nip47Response | undefined> {
    try {
      const scheme = content.includes('?iv=') ? 'nip04' : 'nip44';
      const response: unknown = JSON.parse(await this.signer.decrypt(this.user, content, scheme));
      return typeof response === 'object' && response !== null ? response : undefined;
    } catch {
      return undefined; // not encrypted for this wallet, or invalid JSON
    }
  }
}

/** Whether the event matches the filter. Does not check its signature. */
function isMatchingEvent(event: unknown, { kinds, authors, '#e': requests }: NostrFilter): event is NostrEvent {
  if (typeof event !== 'object' || event === null) return false;
  const { kind, pubkey, tags } = event as Partial<Record<keyof NostrEvent, unknown>>;
  if (typeof kind !== 'number' || typeof pubkey !== 'string' || !Array.isArray(tags)) return false;
  if (!kinds.includes(kind) || !authors.includes(pubkey)) return false;
  return !requests || tags.some((tag) => Array.isArray(tag) && tag[0] === 'e' && requests.includes(tag[1]));
}

/** Wallets without an encryption tag are old and support only `nip04`. */
function selectEncryption({ tags }: NostrEvent): WalletInfo['encryption'] {
  const tag = tags.find(([name]) => name === 'encryption');
  const schemes = (tag?.[1] ?? '').split(/[\s,]+/);
  if (schemes.includes('nip44_v2')) return 'nip44_v2';
  return tag === undefined || schemes.includes('nip04') ? 'nip04' : undefined;
}

function throwTimeout(): never {
  throw new Error('the relays did not respond in time');
}
