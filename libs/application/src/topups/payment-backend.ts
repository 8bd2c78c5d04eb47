import type { CoinTerms, Destination, PaymentAdjustment, PaymentMethod } from '#domain';

/**
 * The port to what takes payments: a Lightning node, a wallet, a payment processor. Each is one folder in
 * `libs/connectors/src/payments`.
 */
export interface PaymentBackend {
  /** Its name in facts: a payment is known by this name and the id that it has there. Never changes. */
  readonly name: string;
  /** How many references one look takes at most. */
  readonly maxBatchSize: number;

  /** Asks for a payment. Nothing remembers what was asked for when the answer is lost: it is never paid, and expires. */
  createPayment(payment: PaymentRequest): Promise<CreatedPayment>;

  /**
   * What has come for these references so far: the truth, as often as it is asked for.
   * @param received ids of payments that were received for them: where the network undoes payments without a trace, only
   * who is told of one can say that it is lost
   * @throws UpstreamError when that is not known for one of them
   */
  fetchPayments(references: readonly string[], received?: readonly string[]): Promise<readonly BackendPayment[]>;

  /**
   * References for which something may have changed, until the back end or `signal` ends it. Only hints: they can be
   * lost, late, repeated or forged, so each is looked at.
   */
  subscribe(signal: AbortSignal): AsyncIterable<string>;

  /**
   * The references that a web hook names, where the back end sends such.
   * @returns undefined when it does not come from the back end
   */
  parseWebhook?(webhook: WebhookRequest): readonly string[] | undefined | Promise<readonly string[] | undefined>;

  close(): Promise<void>;
}

/** A request that came to the address of a back end's web hooks. */
export interface WebhookRequest {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** As it was sent: signatures are over these bytes. */
  readonly body: Buffer;
}

export interface PaymentRequest {
  /** Our id. A back end that takes an id with a request answers a repeated one with the same payment. */
  readonly topupId: string;
  readonly coin: CoinTerms;
  readonly kind: Destination['kind'];
  /** Of the coin's smallest unit. */
  readonly units: bigint;
  readonly memo: string;
  readonly expirySeconds: number;
  /** How often a payment must be confirmed before the back end may call it final. */
  readonly confirmations: number;
  /** Where the customer comes back to from a page of the back end. */
  readonly returnUrl?: string;
}

export interface CreatedPayment {
  readonly reference: string;
  readonly destination: Destination;
  /** The payment hash of a Lightning invoice, where the back end says it, so that the invoice can be held against it. */
  readonly paymentHash?: string;
}

export interface BackendPayment {
  readonly reference: string;
  /** Differs from that of every other payment of this back end, and stays the same. */
  readonly id: string;
  /** What the customer paid, of the coin's smallest unit; 0 when it is lost and that is not known any more. */
  readonly units: bigint;
  /**
   * How often the network has confirmed it; `pending` when it may still fail, however it goes on; `final` when the back
   * end vouches for it; `lost` when it was undone, by the network or as the back end has it: what was credited is taken
   * back.
   */
  readonly confirmations: number | 'pending' | 'final' | 'lost';
  /** When the back end saw it first. ISO 8601. */
  readonly receivedAt: string;
  /** What the back end kept of it or charged for it, each once by its id. Negative: it was given back. */
  readonly fees?: readonly PaymentAdjustment[];
  /** Refunds and disputes, each once by its id. Negative: taken from the customer; positive: given again. */
  readonly reversals?: readonly PaymentAdjustment[];
}

/** The back ends that are configured here. */
export class PaymentBackendRegistry {
  /** @param backendByMethod back ends by method, where the operator prefers another than the method does */
  constructor(
    readonly backends: readonly PaymentBackend[],
    private readonly backendByMethod: Readonly<Record<string, string>> = {},
  ) {}

  find(name: string): PaymentBackend | undefined {
    return this.backends.find((backend) => backend.name === name);
  }

  /** The back end that takes a method's payments: the one that was chosen, or the first of the method's that is configured. */
  findForMethod({ method, backends }: PaymentMethod): PaymentBackend | undefined {
    const chosen = this.backendByMethod[method];
    const names = chosen === undefined ? backends : [chosen];
    return names.map((name) => this.find(name)).find((backend) => backend !== undefined);
  }

  async close(): Promise<void> {
    await Promise.all(this.backends.map((backend) => backend.close()));
  }
}
