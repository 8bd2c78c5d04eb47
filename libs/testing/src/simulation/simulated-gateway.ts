import {
  BillingEngine,
  ConnectWallet,
  ConnectWalletHandler,
  CreateTopup,
  CreateTopupHandler,
  createStreams,
  DisconnectWallet,
  DisconnectWalletHandler,
  EndpointHealth,
  IdempotencyService,
  type IdempotencyStore,
  type Payer,
  PayerFactory,
  Secrets,
  StorageQuota,
  type Streams,
  UpstreamError,
  WalletConnector,
} from '#application';
import type { Endpoint } from '#catalogue';
import type { PartialHold, RiskLimits, Tariff } from '#domain';
import {
  createRootCause,
  type EventStore,
  money,
  parseUsd,
  type SnapshotStore,
  StreamStateCache,
  toPicoUsd,
  withTimeout,
} from '#kernel';
import type { ClientConnection } from '../../../application/src/billing/billing-engine.ts';
import type { Order } from '../../../application/src/billing/order.ts';
import type { Purchase } from '../../../application/src/billing/purchase.ts';
import type { CreatedTopup } from '../../../application/src/topups/create-topup.ts';
import type { ProcessPresence } from '../../../foundation/src/process-presence.ts';
import { type Plan, type RequestStep, TOKEN_PRICE, type TopupStep, type WalletStep } from './plan.ts';
import type { PaymentNetwork } from './simulated-payments.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedProvider } from './simulated-provider.ts';
import { SimulatedWallets, type WalletFaults } from './simulated-wallets.ts';
import { AUTO_TOPUP_LIMITS, MASTER_KEY, openPayments } from './simulated-workflows.ts';

const DRAIN_TIMEOUT_MS = 30_000;
/** How long a gateway waits for charges that are not confirmed before it stops. */
const WRITE_TIMEOUT_MS = 15_000;
export const LIMITS = { totalTimeoutMs: 600_000, drainTimeoutMs: 120_000, heldInFullTokens: 4_096 };
const WAITING = { maxWaiting: 64, maxWaitMs: 30_000 };
export const RISK_LIMITS: RiskLimits = {
  lossPerHour: money.parseUsd('10'),
  exposure: money.parseUsd('0.02'),
  exposurePercent: 5n,
};
/** Tokens of a response whose length is unknown, which are held at first; those of a long one. */
const FIRST_TOKENS = 200;
const LONG_TOKENS = 2_000;
const HOLD_DIVISOR = 64n;
/** How often a growing response is compared with its hold, and how many tokens its hold is ahead. */
const CHECK_MS = 100;
const LEAD_TOKENS = 64;

/** Version of the price list of all charges. */
export const PRICE_LIST = 'prices';

const tariff: Tariff = {
  of: 'maker/model',
  provider: 'maker',
  creditor: 'maker',
  prices: [{ unit: 'output', per: 1n, cost: TOKEN_PRICE / 2n, price: TOKEN_PRICE }],
};
export const ENDPOINT = { slug: 'maker', tariff, parameters: [], onDisconnect: 'stops' } as unknown as Endpoint;

export interface GatewayOptions {
  readonly process: SimulatedProcess;
  readonly store: EventStore;
  readonly snapshots: SnapshotStore;
  readonly provider: SimulatedProvider;
  readonly network: PaymentNetwork;
  getWalletFaults(): WalletFaults;
  /** Called when no money is left to extend a hold. @param held in pico-USD, as far as the gateway knows */
  onExhausted(requestId: string, held: bigint): void;
  readonly idempotencyStore: IdempotencyStore;
  readonly plan: Pick<Plan, 'eventsPerSnapshot' | 'cacheBytes'>;
  readonly presence: ProcessPresence;
}

/** One run of a gateway: the product's billing, with a simulated provider. */
export class SimulatedGateway {
  readonly streams: Streams;
  readonly process: SimulatedProcess;
  private readonly payers: PayerFactory;
  private readonly engine: BillingEngine;
  private readonly provider: SimulatedProvider;
  private readonly createTopup: CreateTopupHandler;
  private readonly connectWallet: ConnectWalletHandler;
  private readonly disconnectWallet: DisconnectWalletHandler;
  private readonly idempotency: IdempotencyService;
  private readonly presence: ProcessPresence;

  constructor(private readonly options: GatewayOptions) {
    const { process, store, snapshots, provider, network, plan } = options;
    const { runtime, clock } = process;
    const { eventsPerSnapshot, cacheBytes } = plan;
    this.process = process;
    this.provider = provider;
    this.streams = createStreams(store, snapshots, runtime, {
      cache: new StreamStateCache(cacheBytes),
      eventsPerSnapshot,
    });
    const { idempotencyStore, presence, getWalletFaults } = options;
    this.presence = presence;
    const dependencies = {
      clock,
      getProcessId: () => presence.getProcessId(),
      events: store,
      runtime,
      riskLimits: RISK_LIMITS,
    };
    this.payers = new PayerFactory(this.streams, dependencies, WAITING);
    const secrets = new Secrets(runtime, MASTER_KEY);
    this.idempotency = new IdempotencyService({
      store: idempotencyStore,
      quota: new StorageQuota(Number.MAX_SAFE_INTEGER, async () => true),
      events: store,
      payers: this.payers,
      secrets,
      clock,
      runtime,
    });
    const { paymentMethods, rates } = openPayments(process, network);
    this.createTopup = new CreateTopupHandler({ streams: this.streams, paymentMethods, rates, clock, runtime });
    const wallets = new SimulatedWallets(network, process, getWalletFaults);
    const connector = new WalletConnector(wallets, paymentMethods, AUTO_TOPUP_LIMITS);
    this.connectWallet = new ConnectWalletHandler(this.streams.autoTopups, connector, secrets, clock);
    this.disconnectWallet = new DisconnectWalletHandler(this.streams.autoTopups, clock);
    this.engine = new BillingEngine(new EndpointHealth(clock), LIMITS, runtime);
  }

  /**
   * Serves a request.
   * @returns what the client is charged, in pico-USD
   * @throws any error that the client gets
   */
  async serve(request: RequestStep, keyId: string | null, connection: ClientConnection): Promise<bigint> {
    const payer = this.payers.forCaller({ accountId: request.account, keyId });
    if (request.idempotencyKey === undefined) return this.sell(request, payer, connection);
    const claimed = await this.idempotency.claim(
      {
        payer: payer.id,
        key: request.idempotencyKey,
        source: 'Idempotency-Key',
        fingerprint: request.idempotencyKey,
        requestId: request.id,
        assertCredentialValid: async () => {},
      },
      payer,
    );
    if ('body' in claimed) return BigInt(claimed.body.toString());
    try {
      const charged = await this.sell(request, claimed.payer, connection);
      await claimed.complete({ status: 200, headers: {}, body: Buffer.from(String(charged)) });
      return charged;
    } catch (error) {
      await claimed.complete(undefined);
      throw error;
    }
  }

  private async sell(request: RequestStep, payer: Payer, connection: ClientConnection): Promise<bigint> {
    const { receipt } = await this.engine.sell(
      payer,
      createOrder(request),
      (purchase) => (request.isExtensible ? this.stream(request, purchase) : this.complete(request, purchase)),
      connection,
    );
    return receipt.charged;
  }

  /** Creates a top-up. @throws any error that the client gets */
  topUp({ id, account, method, usd }: TopupStep): Promise<CreatedTopup> {
    const params = { method, requested: { amount: usd, currency: 'USD' } };
    return this.createTopup.execute(new CreateTopup(account, params, createRootCause(`account:${account}`, id)));
  }

  /** Connects or disconnects a wallet. @throws any error that the client gets */
  async changeWallet(step: WalletStep): Promise<void> {
    const { account } = step;
    const cause = createRootCause(`account:${account}`, `${step.step} ${step.atMs}`);
    if (step.step === 'disconnectWallet') {
      await this.disconnectWallet.execute(new DisconnectWallet(account, cause));
      return;
    }
    const params = { url: step.wallet, threshold: parseUsd(step.threshold), amount: parseUsd(step.usd) };
    await this.connectWallet.execute(new ConnectWallet(account, params, cause));
  }

  /** Ends the requests that run, as a gateway does before it stops: those that do not end in time fail. */
  async stop(): Promise<void> {
    this.process.stop();
    await this.engine.drain(DRAIN_TIMEOUT_MS);
    await withTimeout(this.process.runtime, WRITE_TIMEOUT_MS, this.payers.pendingWrites.waitUntilIdle(), () => {});
    await this.presence.close();
  }

  private async complete(request: RequestStep, purchase: Purchase): Promise<void> {
    const send = () => this.provider.complete(this.provider.start(request, request.maxTokens), this.process);
    const call = { send, estimateUsage: async () => ({ output: 0 }) };
    const { response: tokens } = await purchase.call(call);
    if (request.fails) throw createLostResponse(purchase, tokens);
    purchase.billUsage({ usage: { output: tokens }, estimated: false });
  }

  /** Extends the hold while tokens arrive, and disconnects the provider when the hold is used up. */
  private async stream(request: RequestStep, purchase: Purchase): Promise<void> {
    const { runtime } = this.process;
    const { limitPrice = purchase.hold.amount } = purchase.hold;
    const maxTokens = Number(limitPrice / TOKEN_PRICE);
    const send = async () => this.provider.start(request, maxTokens);
    const { response: generation } = await purchase.call({ send, estimateUsage: async () => ({ output: 0 }) });
    purchase.markStreaming(ENDPOINT);
    while (!generation.isComplete && !purchase.signal.aborted) {
      await runtime.sleep(Math.min(CHECK_MS, generation.remainingMs), { signal: purchase.signal });
      const needed = priceTokens(generation.tokens + LEAD_TOKENS);
      if (needed <= purchase.hold.amount || generation.isComplete) continue;
      const targetAmount = priceTokens(2 * generation.tokens + LEAD_TOKENS);
      const outcome = await purchase.extendHold({ minAmount: needed, targetAmount }).catch(() => 'failed');
      if (outcome === 'exhausted') this.options.onExhausted(request.id, purchase.hold.amount);
      if (outcome === 'exhausted' || outcome === 'failed' || priceTokens(generation.tokens) > purchase.hold.amount)
        break;
    }
    generation.stop();
    purchase.markStreaming(undefined);
    if (request.fails) throw createLostResponse(purchase, generation.tokens);
    purchase.billUsage({ usage: { output: generation.tokens }, estimated: false });
  }
}

/** Bills a response that cannot be used: the customer owes nothing, and the operator absorbs what the provider bills. */
function createLostResponse(purchase: Purchase, tokens: number): UpstreamError {
  purchase.billUsage({ usage: { output: tokens }, estimated: false });
  return purchase.markLastAttemptFailed(new UpstreamError('upstream_error', 'The response cannot be used'));
}

export function priceTokens(tokens: number) {
  return toPicoUsd(TOKEN_PRICE * BigInt(tokens));
}

/** Returns what a request needs of the available money, so that it need not wait. */
export function getFirstPart({ maxTokens, isExtensible }: RequestStep) {
  return priceTokens(isExtensible ? Math.min(FIRST_TOKENS, maxTokens) : maxTokens);
}

function createOrder({ id, maxTokens, isExtensible }: RequestStep): Order {
  const query = { model: 'maker/model', type: 'chat_completion', source: 'api', online: false, free: false } as const;
  const partialHold: PartialHold = {
    minAmount: priceTokens(Math.min(FIRST_TOKENS, maxTokens)),
    divisor: HOLD_DIVISOR,
    extension: {
      minLimitPrice: priceTokens(Math.min(2 * FIRST_TOKENS, maxTokens)),
      longPrice: priceTokens(Math.min(LONG_TOKENS, maxTokens)),
    },
  };
  return {
    id,
    query,
    model: { id: query.model },
    endpoints: [ENDPOINT],
    priceList: { version: PRICE_LIST, lines: [] },
    minPrice: priceTokens(1),
    maxPrice: priceTokens(maxTokens),
    ...(isExtensible ? { partialHold } : {}),
  };
}
