/**
 * Customers' wallets behind Nostr Wallet Connect: the wallet service of Alby's SDK, unmodified, over the relay, paying
 * invoices of the simulated node. Each connection has a wallet of its own, and switches.
 */
import { NWCWalletService, NWCWalletServiceKeyPair, type NWCWalletServiceRequestHandler } from '@getalby/sdk/nwc';
import type { Event } from '@nostr-relay/common';
import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import type { LightningInvoice, LightningNode } from '../lightning/node.ts';
import { payInvoice } from '../lightning/wallet.ts';
import { Refusal } from '../router.ts';
import type { NostrRelayServer, Passage } from './relay.ts';

silenceService();

const REQUEST = 23_194;
const RESPONSE = 23_195;

const METHODS = ['get_info', 'pay_invoice', 'make_invoice', 'lookup_invoice'];
const DEFAULT_EXPIRY_SECONDS = 3_600;

/** How a wallet behaves. */
export const MODES = {
  pays: 'pays at once',
  'pays late': 'pays `delay_ms` after it was asked, and answers then',
  'fails, then pays': 'answers the first request for each invoice with PAYMENT_FAILED',
  'pays silently': 'pays, and never answers',
  'never answers': 'neither pays nor answers',
  'answers twice': 'pays, and answers with two events',
  forged: 'pays, after somebody else has answered in its name: that it has paid, and that its budget is used up',
  quota: 'answers QUOTA_EXCEEDED',
  drops: 'the first request is lost with the connection of who asks',
  'drops its answer': 'pays, and the connection of who asks is lost before the answer',
  'tells secrets': 'answers with an error that repeats the secret of the connection, as a careless wallet might',
  'no pay_invoice': 'says that it cannot be asked to pay',
} as const;

export type WalletMode = keyof typeof MODES;

export interface WalletOptions {
  readonly mode: WalletMode;
  readonly delayMs: number;
  /** Old wallets say nothing of encryption, and understand NIP-04 alone. */
  readonly encryption: 'nip44_v2' | 'nip04';
}

interface Paid {
  readonly payment_hash: string;
  readonly amount_msat: string;
  readonly preimage: string;
}

export interface WalletDependencies {
  readonly relay: NostrRelayServer;
  readonly relayUrl: string;
  readonly node: LightningNode;
}

/** One connection. */
export class NwcWallet {
  readonly secret = Buffer.from(generateSecretKey()).toString('hex');
  private readonly keys: NWCWalletServiceKeyPair;
  private readonly service: NWCWalletService;
  readonly payments: Paid[] = [];
  /** How often it was asked to pay each invoice. */
  readonly asked = new Map<string, number>();
  private lastRequest: Event | undefined;
  private readonly underWay = new Set<string>();
  private requests = 0;

  private readonly surroundings: WalletDependencies;
  options: WalletOptions;

  constructor(surroundings: WalletDependencies, options: WalletOptions) {
    this.surroundings = surroundings;
    this.options = options;
    const walletSecret = Buffer.from(generateSecretKey()).toString('hex');
    this.keys = new NWCWalletServiceKeyPair(walletSecret, publicKeyOf(this.secret));
    this.service = new NWCWalletService({ relayUrl: surroundings.relayUrl });
  }

  get id(): string {
    return this.keys.walletPubkey;
  }

  get clientPubkey(): string {
    return this.keys.clientPubkey;
  }

  get url(): string {
    return `nostr+walletconnect://${this.id}?relay=${encodeURIComponent(this.surroundings.relayUrl)}&secret=${this.secret}`;
  }

  async open(): Promise<void> {
    const methods = this.options.mode === 'no pay_invoice' ? ['get_info'] : METHODS;
    await this.service.publishWalletServiceInfoEvent(this.keys.walletSecret, methods as never, []);
    if (this.options.encryption === 'nip04') await this.publishOldInfo(methods);
    await this.service.subscribe(this.keys, this.handler());
  }

  close(): void {
    this.service.relay.onclose = null;
    this.service.close();
  }

  /** What becomes of a request on its way, by the mode. */
  passage(event: Event): Passage {
    if (event.kind !== REQUEST) return 'passes';
    this.lastRequest = event;
    this.requests++;
    if (this.options.mode === 'drops its answer') return 'passes, and its connection is lost';
    return this.options.mode === 'drops' && this.requests === 1 ? 'is lost with its connection' : 'passes';
  }

  /** Without the tag: what wallets published before encryption could be chosen. */
  private async publishOldInfo(methods: readonly string[]): Promise<void> {
    const created_at = Math.floor(Date.now() / 1000) + 1; // newer than the other one
    const template = { kind: 13_194, created_at, tags: [], content: methods.join(' ') };
    await this.service.relay.publish(await this.service.signEvent(template, this.keys.walletSecret));
  }

  private handler(): NWCWalletServiceRequestHandler {
    return {
      getInfo: async () => ({
        result: { alias: 'Sandbox', methods: ['pay_invoice'], network: 'regtest' } as never,
        error: undefined,
      }),
      makeInvoice: async ({ amount, description = '', expiry = DEFAULT_EXPIRY_SECONDS }) => {
        const made = this.surroundings.node.issue({ msat: BigInt(amount), memo: description, expirySeconds: expiry });
        return { result: transaction(made), error: undefined };
      },
      lookupInvoice: async ({ payment_hash = '' }) => {
        const found = this.surroundings.node.find(payment_hash);
        return found
          ? { result: transaction(found), error: undefined }
          : failed('NOT_FOUND', 'There is no such invoice');
      },
      payInvoice: async ({ invoice }) => this.answer(invoice, this.lastRequest),
    };
  }

  private async answer(invoice: string, request: Event | undefined) {
    const times = (this.asked.get(invoice) ?? 0) + 1;
    this.asked.set(invoice, times);
    const { mode, delayMs } = this.options;
    if (mode === 'never answers') return never();
    if (mode === 'tells secrets')
      return failed('OTHER', `no route for ${this.url} with key ${this.secret.toUpperCase()}`);
    if (mode === 'quota') return failed('QUOTA_EXCEEDED', 'The budget of this connection is used up');
    if (mode === 'fails, then pays' && times === 1) return failed('PAYMENT_FAILED', 'No route was found in time');
    if (mode === 'forged' && request) this.forge(request);
    if (mode === 'pays late') {
      if (this.underWay.has(invoice)) return failed('OTHER', 'there is already a payment pending for this invoice');
      this.underWay.add(invoice);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
    const answer = this.pay(invoice);
    if (mode === 'pays silently') return never();
    if (mode === 'answers twice' && request) await this.reply(request, answer, this.keys.walletSecret);
    return answer;
  }

  private pay(invoice: string) {
    try {
      const { preimage, hash, payment } = payInvoice(this.surroundings.node, invoice);
      const [payment_hash, proof] = [hash, preimage].map((each) => each.toString('hex')) as [string, string];
      this.payments.push({ payment_hash, amount_msat: String(payment?.msat), preimage: proof });
      return { result: { preimage: proof, fees_paid: 0 }, error: undefined };
    } catch (error) {
      const { error: message } = (error instanceof Refusal ? error.body : {}) as { error?: string };
      return failed('PAYMENT_FAILED', message ?? String(error));
    }
  }

  /** Somebody who runs the relay answers first, with a key of their own. */
  private forge(request: Event): void {
    const theirs = Buffer.from(generateSecretKey()).toString('hex');
    for (const answer of [
      { result: { preimage: '00'.repeat(32) }, error: undefined },
      failed('QUOTA_EXCEEDED', 'forged'),
    ]) {
      void this.signed(request, answer, theirs).then((event) => this.surroundings.relay.force(event));
    }
  }

  private async reply(request: Event, answer: object, secret: string): Promise<void> {
    await this.service.relay.publish(await this.signed(request, answer, secret));
  }

  private async signed(request: Event, answer: object, secret: string): Promise<Event> {
    const scheme = request.tags.find(([name]) => name === 'encryption')?.[1] === 'nip44_v2' ? 'nip44_v2' : 'nip04';
    const keys = { ...this.keys, walletSecret: secret } as NWCWalletServiceKeyPair;
    const content = await this.service.encrypt(keys, JSON.stringify({ result_type: 'pay_invoice', ...answer }), scheme);
    const created_at = Math.floor(Date.now() / 1000);
    const tags = [['e', request.id]];
    return finalizeEvent({ kind: RESPONSE, created_at, tags, content }, Buffer.from(secret, 'hex')) as Event;
  }
}

function transaction({
  paymentRequest,
  memo,
  hash,
  preimage,
  msat,
  created,
  expirySeconds,
  payment,
}: LightningInvoice) {
  return {
    ...{ type: 'incoming' as const, state: payment ? ('settled' as const) : ('pending' as const) },
    ...{ invoice: paymentRequest, description: memo, description_hash: '', payment_hash: hash.toString('hex') },
    ...{ preimage: payment ? preimage.toString('hex') : '', amount: Number(payment?.msat ?? msat), fees_paid: 0 },
    ...{ created_at: created, expires_at: created + expirySeconds, settled_at: payment?.at ?? 0 },
  };
}

function failed(code: string, message: string) {
  return { result: undefined, error: { code, message } };
}

function never(): Promise<never> {
  return new Promise(() => {});
}

/** The service reports each connection on the console, where the program logs. */
function silenceService(): void {
  const said =
    /^(checking connection|subscribing|subscribed) to relay|^relay disconnected|^error subscribing|^failed to (connect|parse decrypted)/i;
  for (const level of ['info', 'error'] as const) {
    // biome-ignore lint/suspicious/noConsole: it is the service that writes there
    const before = console[level].bind(console);
    console[level] = (...words: unknown[]) => {
      if (!said.test(String(words[0]))) before(...words);
    };
  }
}

function publicKeyOf(secret: string): string {
  return getPublicKey(Buffer.from(secret, 'hex'));
}
