/**
 * One conversation with a wallet over its relays, by NDK's core. NDK's own wallet class is not used: it believes answers
 * that others have signed, and shares relays among customers.
 */
import NDK, {
  NDKEvent,
  type NDKFilter,
  NDKPrivateKeySigner,
  NDKRelay,
  NDKRelayAuthPolicies,
  NDKRelaySet,
  type NDKSubscription,
  NDKUser,
  normalizeRelayUrl,
} from '@nostr-dev-kit/ndk';
import { type WalletConnection, WalletUnreached } from '#application';
import { PrivateAddress } from '../../http/public-address.ts';
import type { Dialling } from './dialling.ts';
import type { Nip47Response } from './nip47.ts';
import { type RelaySockets, socketsFor } from './relay-socket.ts';

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

// NDK has each relay compute every 30 s, for ever, which part of its events is verified. Here all are.
Object.defineProperty(NDKRelay.prototype, 'updateValidationRatio', { value: () => {} });

/** What a wallet publishes about itself. */
export interface WalletInfo {
  readonly methods: readonly string[];
  readonly encryption: WalletConnection['encryption'];
}

export class NostrSession {
  private readonly ndk: NDK;
  private readonly relays: readonly NDKRelay[];
  private readonly signer: NDKPrivateKeySigner;
  private readonly failures = new Set<string>();
  private isClosed = false;

  private readonly sockets: RelaySockets;

  constructor(
    private readonly wallet: Pick<WalletConnection, 'pubkey' | 'relays' | 'secret'>,
    dialling: Dialling,
  ) {
    this.sockets = socketsFor(dialling, (error) => this.failed(error));
    this.signer = new NDKPrivateKeySigner(wallet.secret);
    const named = new Set(wallet.relays.map((each) => normalizeRelayUrl(each)));
    const relayConnectionFilter = (url: string) => named.has(normalizeRelayUrl(url));
    const options = { autoConnectUserRelays: false, enableOutboxModel: false, relayConnectionFilter };
    this.ndk = new NDK({
      ...{
        explicitRelayUrls: [...wallet.relays],
        signer: this.signer,
        initialValidationRatio: 1,
        lowestValidationRatio: 1,
      },
      ...options,
    });
    this.ndk.relayAuthDefaultPolicy = NDKRelayAuthPolicies.signIn({ ndk: this.ndk, signer: this.signer });
    this.relays = [...this.ndk.pool.relays.values()];
    for (const relay of this.relays) this.dialOurselves(relay);
  }

  /** @throws WalletUnreached when no relay can be connected to */
  async open(): Promise<void> {
    const connected = this.relays.map(
      (relay) =>
        new Promise<void>((resolve, reject) => {
          relay.once('connect', resolve);
          relay.once('disconnect', () => reject(new Error('refused')));
          relay.connect(undefined, false).catch((error: Error) => {
            this.failed(error);
            reject(error);
          });
        }),
    );
    try {
      await within(CONNECT_TIMEOUT_MS, Promise.any(connected));
      await within(OTHERS_WITHIN_MS, Promise.allSettled(connected)).catch(() => {});
    } catch {
      throw new WalletUnreached([...this.failures].join('; ') || 'no relay of the wallet can be connected to');
    }
  }

  /** @returns undefined when no relay has it */
  async info(): Promise<WalletInfo | undefined> {
    const filter = { kinds: [INFO], authors: [this.wallet.pubkey], limit: 1 };
    const events: NDKEvent[] = [];
    const all = new Promise<void>((onEose) => {
      this.subscribe(filter, true, { onEvent: (event) => events.push(event), onEose });
    });
    await within(INFO_TIMEOUT_MS, all).catch(() => {}); // then with what has come
    const newest = events
      .filter((event) => this.isFromWallet(event))
      .toSorted((a, b) => (b.created_at ?? 0) - (a.created_at ?? 0))[0];
    if (!newest) return undefined;
    const schemes = newest.tagValue('encryption')?.split(/\s+/) ?? [];
    const methods = newest.content.split(/[\s,]+/).filter((each) => each !== '');
    return { methods, encryption: schemes.includes('nip44_v2') ? 'nip44_v2' : 'nip04' };
  }

  /**
   * Sends a request, once, and returns when a relay has taken it.
   * @param hear gets each response that the wallet has signed, until the session is closed
   * @throws Error when it is not known whether it has left
   */
  async ask(
    { method, params }: { readonly method: string; readonly params: object },
    encryption: WalletConnection['encryption'],
    hear: (response: Nip47Response) => void,
  ): Promise<void> {
    const event = await this.request(JSON.stringify({ method, params }), encryption);
    const filter = { kinds: [RESPONSE], authors: [this.wallet.pubkey], '#e': [event.id] };
    let answered = () => {};
    const firstAnswer = new Promise<void>((resolve) => {
      answered = resolve;
    });
    await this.subscribed(filter, (response) => {
      if (!this.isFromWallet(response) || !response.getMatchingTags('e').some(([, id]) => id === event.id)) return;
      void this.read(response).then((read) => {
        if (!read || this.isClosed) return;
        answered();
        hear(read);
      });
    });
    const taken = this.connected.map((relay) => relay.publish(event, TAKEN_WITHIN_MS));
    const takenByOne = Promise.any(taken).catch(() => {
      throw new Error('no relay has said that it took the request');
    });
    await Promise.race([firstAnswer, takenByOne]);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const subscription of this.ndk.subManager.subscriptions.values()) subscription.stop();
    for (const relay of this.relays) {
      relay.connectivity.disconnect();
      relay.connectivity.resetReconnectionState(); // else it connects again
      relay.removeAllListeners();
    }
    this.ndk.pool.removeAllListeners();
  }

  /** NDK constructs the global class when it connects, and each time it connects again, before anything else runs. */
  private dialOurselves({ connectivity }: NDKRelay): void {
    const connect = connectivity.connect.bind(connectivity);
    connectivity.connect = (timeout, reconnect) => {
      if (this.isClosed) return Promise.resolve();
      const theirs = globalThis.WebSocket;
      globalThis.WebSocket = this.sockets as unknown as typeof theirs;
      try {
        return connect(timeout, reconnect);
      } finally {
        globalThis.WebSocket = theirs;
      }
    };
  }

  /** Only what we refuse is told: what a host answers to a stranger's wish is not the stranger's to know. */
  private failed(error: Error): void {
    if (error instanceof PrivateAddress) this.failures.add(error.message);
  }

  private async request(content: string, encryption: WalletConnection['encryption']): Promise<NDKEvent> {
    const event = new NDKEvent(this.ndk, { kind: REQUEST, content, tags: [['p', this.wallet.pubkey]] } as never);
    if (encryption === 'nip44_v2') event.tags.push(['encryption', encryption]);
    await event.encrypt(this.user, this.signer, encryption === 'nip04' ? 'nip04' : 'nip44');
    await event.sign(this.signer);
    return event;
  }

  /** One that is not would be waited for, and NDK complains about it. */
  private get connected(): readonly NDKRelay[] {
    return this.relays.filter((relay) => relay.connected);
  }

  private get user(): NDKUser {
    return new NDKUser({ pubkey: this.wallet.pubkey });
  }

  /** NDK verifies as well; it is repeated here because money hangs on it. */
  private isFromWallet(event: NDKEvent): boolean {
    return event.pubkey === this.wallet.pubkey && event.verifySignature(false) === true;
  }

  /** @returns undefined for what cannot be decrypted, or is no object */
  private async read(event: NDKEvent): Promise<Nip47Response | undefined> {
    try {
      await event.decrypt(this.user, this.signer);
      const response: unknown = JSON.parse(event.content);
      return typeof response === 'object' && response !== null ? response : undefined;
    } catch {
      return undefined;
    }
  }

  /** Returns when relays have the subscription, or soon. */
  private async subscribed(filter: NDKFilter, onEvent: (event: NDKEvent) => void): Promise<void> {
    const understood = new Promise<void>((onEose) => {
      this.subscribe(filter, false, { onEvent, onEose });
    });
    await within(SUBSCRIBED_WITHIN_MS, understood).catch(() => {});
  }

  private subscribe(
    filter: NDKFilter,
    closeOnEose: boolean,
    handlers: { onEvent(event: NDKEvent): void; onEose(): void },
  ): NDKSubscription {
    const relaySet = new NDKRelaySet(new Set(this.connected), this.ndk);
    const options = { closeOnEose, groupable: false, relaySet, subId: undefined };
    return this.ndk.subscribe(filter, options, handlers);
  }
}

/** @throws Error when it takes longer */
function within<T>(milliseconds: number, promise: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`it took more than ${milliseconds} ms`)), milliseconds);
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
