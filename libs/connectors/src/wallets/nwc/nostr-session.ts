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
import { type Filter, NostrRelay } from './relay.ts';
import type { RelayConnectOptions } from './relay-connect.ts';

const INFO = 13_194;
const REQUEST = 23_194;
const RESPONSE = 23_195;
/** Until the first relay is connected, and until one has taken an event. */
const CONNECT_TIMEOUT_MS = 6_000;
/** How long the others are waited for then: the wallet may listen to one of them alone. */
const OTHERS_WITHIN_MS = 1_500;
const TAKEN_WITHIN_MS = 6_000;
/** A relay says that it has understood a subscription; one that does not is written to all the same. */
const SUBSCRIBED_WITHIN_MS = 2_000;
const INFO_TIMEOUT_MS = 5_000;
/** Signatures that are checked for one subscription at one relay: each takes a millisecond, and one event is asked for. */
const MAX_CHECKED = 5;

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
  private readonly refusals = new Set<string>();
  private isClosed = false;

  constructor(
    private readonly wallet: Pick<WalletConnection, 'pubkey' | 'relays' | 'secret'>,
    dialling: RelayConnectOptions,
  ) {
    this.signer = new NDKPrivateKeySigner(wallet.secret);
    this.user = new NDKUser({ pubkey: wallet.pubkey });
    this.relays = wallet.relays.map((url) => new NostrRelay(url, dialling, (template) => this.signed(template)));
    for (const { connected } of this.relays) connected.catch((error: unknown) => this.failed(error));
  }

  /** @throws WalletUnreachableError when no relay can be connected to */
  async open(): Promise<void> {
    const connected = this.relays.map((relay) => relay.connected);
    try {
      await within(CONNECT_TIMEOUT_MS, Promise.any(connected));
      await within(OTHERS_WITHIN_MS, Promise.allSettled(connected)).catch(() => {});
    } catch {
      throw new WalletUnreachableError([...this.refusals].join('; ') || 'no relay of the wallet can be connected to');
    }
  }

  /** @returns undefined when no relay has it */
  async info(): Promise<WalletInfo | undefined> {
    const events: NostrEvent[] = [];
    const filter = { kinds: [INFO], authors: [this.wallet.pubkey], limit: 1 };
    const all = this.subscribe(filter, (event) => events.push(event));
    await within(INFO_TIMEOUT_MS, Promise.all(all)).catch(() => {}); // then with what has come
    const newest = events.toSorted((a, b) => b.created_at - a.created_at)[0];
    if (!newest) return undefined;
    const methods = newest.content.split(/[\s,]+/).filter((each) => each !== '');
    return { methods, encryption: encryptionOf(newest) };
  }

  /**
   * Sends a request, once, and returns when a relay has taken it.
   * @param hear gets each response that the wallet has signed, until the session is closed
   * @throws WalletUnreachableError when it has not left; Error when that is not known
   */
  async ask(
    { method, params }: { readonly method: string; readonly params: object },
    encryption: WalletConnection['encryption'],
    hear: (response: Nip47Response) => void,
  ): Promise<void> {
    const event = await this.request(JSON.stringify({ method, params }), encryption);
    const filter = { kinds: [RESPONSE], authors: [this.wallet.pubkey], '#e': [event.id] };
    const { promise: firstAnswer, resolve: answered } = Promise.withResolvers<void>();
    const subscribed = this.subscribe(filter, async (response) => {
      const read = await this.read(response);
      if (!read || this.isClosed) return;
      answered();
      hear(read);
    });
    await within(SUBSCRIBED_WITHIN_MS, Promise.all(subscribed)).catch(() => {});
    const taken = this.reached.map((relay) => relay.publish(event));
    if (taken.length === 0) throw new WalletUnreachableError('every relay of the wallet has ended the connection');
    const takenByOne = within(TAKEN_WITHIN_MS, Promise.any(taken)).catch(() => {
      throw new Error('no relay has said that it took the request');
    });
    await Promise.race([firstAnswer, takenByOne]);
  }

  close(): void {
    this.isClosed = true;
    for (const relay of this.relays) relay.close();
  }

  /** Connections that are lost are not made again: what is asked for is asked again, and an answer is only a hint. */
  private get reached(): readonly NostrRelay[] {
    return this.relays.filter((relay) => relay.isOpen);
  }

  /**
   * @param hear gets what the wallet has signed and the filter asks for
   * @returns for each relay, when it has understood
   */
  private subscribe(filter: Filter, hear: (event: NostrEvent) => unknown): readonly Promise<void>[] {
    return this.reached.map((relay) => {
      let checked = 0;
      return relay.subscribe(filter, (event) => {
        if (this.isClosed || !isAskedFor(event, filter) || ++checked > MAX_CHECKED) return;
        if (verifyEvent(event)) hear(event);
      });
    });
  }

  /** Only what we refuse is told: what a host answers to a stranger's wish is not the stranger's to know. */
  private failed(error: unknown): void {
    if (error instanceof PrivateAddressError) this.refusals.add(error.message);
  }

  private async request(content: string, encryption: WalletConnection['encryption']): Promise<NostrEvent> {
    const isNew = encryption === 'nip44_v2';
    const tags = [['p', this.wallet.pubkey], ...(isNew ? [['encryption', encryption]] : [])];
    const sealed = await this.signer.encrypt(this.user, content, isNew ? 'nip44' : 'nip04');
    return this.signed({ kind: REQUEST, created_at: Math.floor(Date.now() / 1_000), tags, content: sealed });
  }

  private async signed(template: EventTemplate): Promise<NostrEvent> {
    const event = new NDKEvent(undefined, template);
    await event.sign(this.signer);
    return event.rawEvent() as NostrEvent;
  }

  /** @returns undefined for what cannot be decrypted, or is no object */
  private async read({ content }: NostrEvent): Promise<Nip47Response | undefined> {
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
function isAskedFor(event: unknown, { kinds, authors, '#e': requests }: Filter): event is NostrEvent {
  if (typeof event !== 'object' || event === null) return false;
  const { kind, pubkey, tags } = event as Partial<Record<keyof NostrEvent, unknown>>;
  if (typeof kind !== 'number' || typeof pubkey !== 'string' || !Array.isArray(tags)) return false;
  if (!kinds.includes(kind) || !authors.includes(pubkey)) return false;
  return !requests || tags.some((tag) => Array.isArray(tag) && tag[0] === 'e' && requests.includes(tag[1]));
}

/** Wallets that say nothing of it are old. */
function encryptionOf({ tags }: NostrEvent): WalletInfo['encryption'] {
  const tag = tags.find(([name]) => name === 'encryption');
  const schemes = (tag?.[1] ?? '').split(/[\s,]+/);
  if (schemes.includes('nip44_v2')) return 'nip44_v2';
  return tag === undefined || schemes.includes('nip04') ? 'nip04' : undefined;
}

/** @throws Error when it takes longer */
function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`it took more than ${milliseconds} ms`)), milliseconds);
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
