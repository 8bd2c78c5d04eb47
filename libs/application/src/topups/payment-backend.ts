import type { Coin, Destination, PaymentMethod } from '#domain';

/**
 * The port to what takes payments: a Lightning node, a wallet, a payment processor. Each is one folder in
 * `libs/connectors/src/payments`.
 */
export interface PaymentBackend {
  /** Its name in facts: a payment is known by this name and the id that it has there. Never changes. */
  readonly name: string;
  /** How many references one look takes at most. */
  readonly batch: number;

  /** Asks for a payment. Nothing remembers what was asked for when the answer is lost: it is never paid, and expires. */
  request(payment: PaymentRequest): Promise<RequestedPayment>;

  /**
   * What has come for these references so far: the truth, as often as it is asked for.
   * @throws UpstreamFailure when that is not known for one of them
   */
  look(references: readonly string[]): Promise<readonly BackendPayment[]>;

  /**
   * References for which something may have changed, until the back end or `signal` ends it. Only hints: they can be
   * lost, late, repeated or forged, so each is looked at.
   */
  hints(signal: AbortSignal): AsyncIterable<string>;

  close(): Promise<void>;
}

export interface PaymentRequest {
  readonly coin: Coin;
  readonly kind: Destination['kind'];
  /** Of the coin's smallest unit. */
  readonly units: bigint;
  readonly memo: string;
  readonly expirySeconds: number;
}

export interface RequestedPayment {
  readonly reference: string;
  readonly destination: Destination;
  /** The payment hash of a Lightning invoice, where the back end says it, so that the invoice can be held against it. */
  readonly paymentHash?: string;
}

export interface BackendPayment {
  readonly reference: string;
  /** Differs from that of every other payment of this back end, and stays the same. */
  readonly id: string;
  /** What the customer paid, of the coin's smallest unit. */
  readonly units: bigint;
  /** What the back end kept of them. */
  readonly fee?: bigint;
  /** How often the network has confirmed it; `final` when the back end vouches for it. */
  readonly confirmations: number | 'final';
  /** When the back end saw it first. ISO 8601. */
  readonly receivedAt: string;
}

/** The back ends that are configured here. */
export class PaymentBackends {
  constructor(readonly all: readonly PaymentBackend[]) {}

  named(name: string): PaymentBackend | undefined {
    return this.all.find((backend) => backend.name === name);
  }

  /** The back end that takes a method's payments: the first of the method's that is configured. */
  of({ backends }: PaymentMethod): PaymentBackend | undefined {
    return backends.map((name) => this.named(name)).find((backend) => backend !== undefined);
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((backend) => backend.close()));
  }
}
