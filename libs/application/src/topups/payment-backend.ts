import type { CoinTerms, Destination, PaymentAdjustment, PaymentMethod } from '#domain';
import { type Timers, withTimeout } from '#kernel';
import { isCertainRejection, UpstreamError } from '../errors.ts';
import { callMonitored, type ServiceMonitor } from '../operator-problems.ts';

/**
 * The port to what receives payments: a Lightning node, a wallet, a payment processor. Each has its folder in
 * `libs/connectors/src/payments`.
 */
export interface PaymentBackend {
  /** Name in events: a payment is identified by this name and its id at the payment backend. Never changes. */
  readonly name: string;
  /** Maximum number of references per poll. */
  readonly maxBatchSize: number;

  /**
   * Requests a payment. If the response is lost, nothing records the request: it is never paid, and expires.
   * @throws UpstreamError; `isCertainRejection` applies only if the payment backend created nothing
   */
  createPayment(payment: PaymentRequest): Promise<CreatedPayment>;

  /**
   * Returns the current payments for these references; may be repeated.
   * @param received ids of the payments recorded so far: some networks drop a payment without a trace, and only these
   *   ids show that it is lost
   * @throws UpstreamError if the state of a reference is unknown
   */
  fetchPayments(references: readonly string[], received?: readonly string[]): Promise<readonly BackendPayment[]>;

  /**
   * Yields references for which something may have changed, until the payment backend or `signal` ends the
   * subscription. References are only hints, which can be lost, delayed, repeated or forged, so each one is polled.
   */
  subscribe(signal: AbortSignal): AsyncIterable<string>;

  /**
   * Returns the references that a webhook names, if the payment backend sends webhooks.
   * @returns undefined if the request does not come from the payment backend
   */
  parseWebhook?(webhook: WebhookRequest): readonly string[] | undefined | Promise<readonly string[] | undefined>;

  close(): Promise<void>;
}

const RETRY_AFTER_SECONDS = 5;

/** Records what the calls to a payment backend show about its credential. */
export function monitorBackend(backend: PaymentBackend, monitor: ServiceMonitor): PaymentBackend {
  const { name, maxBatchSize } = backend;
  return {
    name,
    maxBatchSize,
    createPayment: (payment) => callMonitored(monitor, () => backend.createPayment(payment)),
    fetchPayments: (references, received) => callMonitored(monitor, () => backend.fetchPayments(references, received)),
    async *subscribe(signal) {
      try {
        yield* backend.subscribe(signal);
      } catch (error) {
        monitor.recordFailure(error);
        throw error;
      }
    },
    ...(backend.parseWebhook ? { parseWebhook: (webhook) => backend.parseWebhook?.(webhook) } : {}),
    close: () => backend.close(),
  };
}

/** How long a caller waits for the creation of a Lightning invoice. */
export interface LightningTimeout {
  readonly lightningTimeoutMs: number;
  readonly timers: Pick<Timers, 'startTimer'>;
}

/**
 * Requests a payment from the first of these payment backends that accepts the operator's credential. A backend that
 * rejects it has created nothing, so another one can be called. After any other failure none is.
 * @param backends of one method; not empty
 * @throws UpstreamError of the last backend that was called; see `createPaymentInTime`
 */
export async function createPaymentAtFirst(
  backends: readonly PaymentBackend[],
  request: PaymentRequest,
  timeout: LightningTimeout,
): Promise<{ readonly backend: PaymentBackend; readonly payment: CreatedPayment }> {
  const [backend, ...otherBackends] = backends as readonly [PaymentBackend, ...PaymentBackend[]];
  try {
    return { backend, payment: await createPaymentInTime(backend, request, timeout) };
  } catch (error) {
    const isRejected = error instanceof UpstreamError && error.isCredentialRejected && isCertainRejection(error);
    if (!isRejected || otherBackends.length === 0) throw error;
    return createPaymentAtFirst(otherBackends, request, timeout);
  }
}

/**
 * Requests a payment while a caller waits.
 * @throws UpstreamError `upstream_unavailable` if a Lightning invoice is not created in time; it may still be created
 */
async function createPaymentInTime(
  backend: PaymentBackend,
  request: PaymentRequest,
  { lightningTimeoutMs, timers }: LightningTimeout,
): Promise<CreatedPayment> {
  const creation = backend.createPayment(request);
  if (request.kind !== 'bolt11') return creation;
  return withTimeout(timers, lightningTimeoutMs, creation, () => {
    throw new UpstreamError('upstream_unavailable', `${backend.name} did not create an invoice in time`, {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    });
  });
}

/** A request to the webhook URL of a payment backend. */
export interface WebhookRequest {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The bytes as they were sent: signatures cover them. */
  readonly body: Buffer;
}

export interface PaymentRequest {
  /** Our id. A payment backend that accepts ids returns the same payment for a repeated request. */
  readonly topupId: string;
  readonly coin: CoinTerms;
  readonly kind: Destination['kind'];
  /** In the smallest unit of the coin. */
  readonly units: bigint;
  readonly memo: string;
  readonly expirySeconds: number;
  /** Number of confirmations from which the payment backend may call a payment final. */
  readonly confirmations: number;
  /** Where a page of the payment backend sends the customer back to. */
  readonly returnUrl?: string;
}

export interface CreatedPayment {
  readonly reference: string;
  readonly destination: Destination;
  /** Payment hash of a Lightning invoice, if the payment backend reports it. The invoice is verified against it. */
  readonly paymentHash?: string;
}

export interface BackendPayment {
  readonly reference: string;
  /** Unique among the payments of this payment backend; never changes. */
  readonly id: string;
  /**
   * Id of what the customer paid with, if the payment backend could report it for two payments: a payment intent of a
   * card. It differs from the ids of all payments, and only one top-up can have it.
   */
  readonly sourceId?: string;
  /**
   * What the customer paid, in the smallest unit of the coin; 0 if the payment is lost and its amount is no longer
   * known.
   */
  readonly units: bigint;
  /**
   * Number of network confirmations. `pending`: the payment may still fail. `final`: the payment backend guarantees it.
   * `lost`: the network or the payment backend has reversed the payment, and its credit is reversed too.
   */
  readonly confirmations: number | 'pending' | 'final' | 'lost';
  /** When the payment backend first observed the payment. ISO 8601. */
  readonly receivedAt: string;
  /**
   * What the payment backend deducted from the payment or charged for it, each once by its id. Negative: returned to
   * the operator.
   */
  readonly fees?: readonly PaymentAdjustment[];
  /**
   * Refunds and disputes, each once by its id. Negative: taken from the customer; positive: returned to the customer.
   */
  readonly reversals?: readonly PaymentAdjustment[];
}

/** The payment backends that are configured here. */
export class PaymentBackendRegistry {
  /**
   * @param backendByMethod names of the payment backends that the operator has chosen, by method
   */
  constructor(
    readonly backends: readonly PaymentBackend[],
    private readonly backendByMethod: Readonly<Record<string, string>> = {},
  ) {}

  find(name: string): PaymentBackend | undefined {
    return this.backends.find((backend) => backend.name === name);
  }

  /**
   * Returns the payment backend of a method: the chosen one or, without a choice, the first one that is configured.
   * @returns undefined if the chosen one or, without a choice, every one of the method is not configured
   */
  findForMethod(method: PaymentMethod): PaymentBackend | undefined {
    return this.listForMethod(method)[0];
  }

  /**
   * Returns the payment backend of a method and, unless the operator has chosen it, the other configured ones of the
   * method, in their order.
   */
  listForMethod({ method, backends }: PaymentMethod): readonly PaymentBackend[] {
    const chosen = this.backendByMethod[method];
    const names = chosen === undefined ? backends : [chosen];
    return names.flatMap((name) => this.find(name) ?? []);
  }

  async close(): Promise<void> {
    await Promise.all(this.backends.map((backend) => backend.close()));
  }
}
