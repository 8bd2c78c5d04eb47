/**
 * Customers' wallets with Nostr Wallet Connect. They use the wallet service of Alby's SDK, unmodified, over the relay,
 * and pay invoices of the simulated node. Each connection has its own wallet and options.
 */
import { NWCWalletService, NWCWalletServiceKeyPair, type NWCWalletServiceRequestHandler } from '@getalby/sdk/nwc';
import type { Event } from '@nostr-relay/common';
import { finalizeEvent, generateSecretKey, getPublicKey } from 'nostr-tools/pure';
import type { LightningInvoice, LightningNode } from '../lightning/node.ts';
import { payInvoice } from '../lightning/wallet.ts';
import { HttpError } from '../router.ts';
import type { EventDisposition, NostrRelayServer } from './relay.ts';

muteService();

const REQUEST = 23_194;
const RESPONSE = 23_195;

const METHODS = ['get_info', 'pay_invoice', 'make_invoice', 'lookup_invoice'];
const DEFAULT_EXPIRY_SECONDS = 3_600;

/** How a wallet behaves. */
export const MODES = {
  pays: 'pays immediately',
  'pays late': 'pays `delay_ms` after the request, and then responds',
  'fails, then pays': 'responds to the first request for each invoice with PAYMENT_FAILED',
  'pays silently': 'pays, but never responds',
  'never answers': 'neither pays nor responds',
  'answers twice': 'pays, and responds with two events',
  forged: 'pays; first a third party sends two responses in the name of the wallet: a success, and QUOTA_EXCEEDED',
  quota: 'responds with QUOTA_EXCEEDED',
  drops: 'the first request to the wallet is lost, and the connection of its sender is closed',
  'drops its answer': 'pays, but the connection of the sender is closed before the response',
  'tells secrets': 'responds with an error that contains the secret of the connection, as a careless wallet might',
  'no pay_invoice': 'does not offer the method pay_invoice',
} as const;

export type WalletMode = keyof typeof MODES;

export interface WalletOptions {
  readonly mode: WalletMode;
  readonly delayMs: number;
  /** `nip04` simulates an old wallet, which does not publish its encryption schemes, so that clients use NIP-04. */
  readonly encryption: 'nip44_v2' | 'nip04';
}

interface WalletPayment {
  readonly payment_hash: string;
  readonly amount_msat: string;
  readonly preimage: string;
}

export interface WalletDependencies {
  readonly relay: NostrRelayServer;
  readonly relayUrl: string;
  readonly node: LightningNode;
}

export class NwcWallet {
  readonly secret = Buffer.from(generateSecretKey()).toString('hex');
  private readonly keys: NWCWalletServiceKeyPair;
  private readonly service: NWCWalletService;
  readonly payments: WalletPayment[] = [];
  /** Number of payment requests by invoice. */
  readonly requestCounts = new Map<string, number>();
  private lastRequest: Event | undefined;
  private readonly pendingInvoices = new Set<string>();
  private requests = 0;

  private readonly dependencies: WalletDependencies;
  options: WalletOptions;

  constructor(dependencies: WalletDependencies, options: WalletOptions) {
    this.dependencies = dependencies;
    this.options = options;
    const walletSecret = Buffer.from(generateSecretKey()).toString('hex');
    this.keys = new NWCWalletServiceKeyPair(walletSecret, derivePublicKey(this.secret));
    this.service = new NWCWalletService({ relayUrl: dependencies.relayUrl });
  }

  get id(): string {
    return this.keys.walletPubkey;
  }

  get clientPubkey(): string {
    return this.keys.clientPubkey;
  }

  get url(): string {
    return `nostr+walletconnect://${this.id}?relay=${encodeURIComponent(this.dependencies.relayUrl)}&secret=${this.secret}`;
  }

  async open(): Promise<void> {
    const methods = this.options.mode === 'no pay_invoice' ? ['get_info'] : METHODS;
    await this.service.publishWalletServiceInfoEvent(this.keys.walletSecret, methods as never, []);
    if (this.options.encryption === 'nip04') await this.publishLegacyInfo(methods);
    await this.service.subscribe(this.keys, this.createHandler());
  }

  close(): void {
    this.service.relay.onclose = null;
    this.service.close();
  }

  /** Decides what the relay does with an event, according to the mode. */
  decideDisposition(event: Event): EventDisposition {
    if (event.kind !== REQUEST) return 'passes';
    this.lastRequest = event;
    this.requests++;
    if (this.options.mode === 'drops its answer') return 'passes, and its connection is lost';
    return this.options.mode === 'drops' && this.requests === 1 ? 'is lost with its connection' : 'passes';
  }

  /** Publishes the info event of old wallets, which has no encryption tag. */
  private async publishLegacyInfo(methods: readonly string[]): Promise<void> {
    const created_at = Math.floor(Date.now() / 1000) + 1; // newer than the event of the service
    const template = { kind: 13_194, created_at, tags: [], content: methods.join(' ') };
    await this.service.relay.publish(await this.service.signEvent(template, this.keys.walletSecret));
  }

  private createHandler(): NWCWalletServiceRequestHandler {
    return {
      getInfo: async () => ({
        result: { alias: 'Sandbox', methods: ['pay_invoice'], network: 'regtest' } as never,
        error: undefined,
      }),
      makeInvoice: async ({ amount, description = '', expiry = DEFAULT_EXPIRY_SECONDS }) => {
        const invoice = this.dependencies.node.issue({
          msat: BigInt(amount),
          memo: description,
          expirySeconds: expiry,
        });
        return { result: toTransactionJson(invoice), error: undefined };
      },
      lookupInvoice: async ({ payment_hash = '' }) => {
        const invoice = this.dependencies.node.find(payment_hash);
        return invoice
          ? { result: toTransactionJson(invoice), error: undefined }
          : createErrorResult('NOT_FOUND', 'There is no such invoice');
      },
      payInvoice: async ({ invoice }) => this.handlePayment(invoice, this.lastRequest),
    };
  }

  private async handlePayment(invoice: string, request: Event | undefined) {
    const times = (this.requestCounts.get(invoice) ?? 0) + 1;
    this.requestCounts.set(invoice, times);
    const { mode, delayMs } = this.options;
    if (mode === 'never answers') return waitForever();
    if (mode === 'tells secrets')
      return createErrorResult('OTHER', `no route for ${this.url} with key ${this.secret.toUpperCase()}`);
    if (mode === 'quota') return createErrorResult('QUOTA_EXCEEDED', 'The budget of this connection is used up');
    if (mode === 'fails, then pays' && times === 1)
      return createErrorResult('PAYMENT_FAILED', 'No route was found in time');
    if (mode === 'forged' && request) this.publishForgedResponses(request);
    if (mode === 'pays late') {
      if (this.pendingInvoices.has(invoice))
        return createErrorResult('OTHER', 'there is already a payment pending for this invoice');
      this.pendingInvoices.add(invoice);
      await new Promise((resolve) => setTimeout(resolve, delayMs));
    }
    const response = this.pay(invoice);
    if (mode === 'pays silently') return waitForever();
    if (mode === 'answers twice' && request) await this.reply(request, response, this.keys.walletSecret);
    return response;
  }

  private pay(invoice: string) {
    try {
      const { preimage, hash, payment } = payInvoice(this.dependencies.node, invoice);
      const [payment_hash, proof] = [hash, preimage].map((bytes) => bytes.toString('hex')) as [string, string];
      this.payments.push({ payment_hash, amount_msat: String(payment?.msat), preimage: proof });
      return { result: { preimage: proof, fees_paid: 0 }, error: undefined };
    } catch (error) {
      const { error: message } = (error instanceof HttpError ? error.body : {}) as { error?: string };
      return createErrorResult('PAYMENT_FAILED', message ?? String(error));
    }
  }

  /** Publishes responses that are signed with another key, as the operator of a relay could. */
  private publishForgedResponses(request: Event): void {
    const forgedSecret = Buffer.from(generateSecretKey()).toString('hex');
    for (const response of [
      { result: { preimage: '00'.repeat(32) }, error: undefined },
      createErrorResult('QUOTA_EXCEEDED', 'forged'),
    ]) {
      void this.signResponse(request, response, forgedSecret).then((event) => this.dependencies.relay.broadcast(event));
    }
  }

  private async reply(request: Event, response: object, secret: string): Promise<void> {
    await this.service.relay.publish(await this.signResponse(request, response, secret));
  }

  private async signResponse(request: Event, response: object, secret: string): Promise<Event> {
    const scheme = request.tags.find(([name]) => name === 'encryption')?.[1] === 'nip44_v2' ? 'nip44_v2' : 'nip04';
    const keys = { ...this.keys, walletSecret: secret } as NWCWalletServiceKeyPair;
    const content = await this.service.encrypt(
      keys,
      JSON.stringify({ result_type: 'pay_invoice', ...response }),
      scheme,
    );
    const created_at = Math.floor(Date.now() / 1000);
    const tags = [['e', request.id]];
    return finalizeEvent({ kind: RESPONSE, created_at, tags, content }, Buffer.from(secret, 'hex')) as Event;
  }
}

function toTransactionJson({
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
    type: 'incoming' as const,
    state: payment ? ('settled' as const) : ('pending' as const),
    invoice: paymentRequest,
    description: memo,
    description_hash: '',
    payment_hash: hash.toString('hex'),
    preimage: payment ? preimage.toString('hex') : '',
    amount: Number(payment?.msat ?? msat),
    fees_paid: 0,
    created_at: created,
    expires_at: created + expirySeconds,
    settled_at: payment?.at ?? 0,
  };
}

function createErrorResult(code: string, message: string) {
  return { result: undefined, error: { code, message } };
}

function waitForever(): Promise<never> {
  return new Promise(() => {});
}

/** Mutes expected messages of the service, which would appear in the log of the process. */
function muteService(): void {
  const mutedPattern =
    /^(checking connection|subscribing|subscribed) to relay|^relay disconnected|^error subscribing|^failed to (connect|parse decrypted)/i;
  for (const level of ['info', 'error'] as const) {
    // biome-ignore lint/suspicious/noConsole: the service writes to the console
    const before = console[level].bind(console);
    console[level] = (...args: unknown[]) => {
      if (!mutedPattern.test(String(args[0]))) before(...args);
    };
  }
}

function derivePublicKey(secret: string): string {
  return getPublicKey(Buffer.from(secret, 'hex'));
}
