/** Sells paid requests: hold money, serve, settle. Everything that costs money goes through this class. */
import { money, type Runtime, type Timers } from '#kernel';
import { createDisconnectError, type FailureCode, toUpstreamError, UpstreamError } from '../errors.ts';
import { EndpointHealth } from '../routing/endpoint-health.ts';
import { CostMonitor } from './cost-monitor.ts';
import { type Deadline, EMPTY_RECEIPT, type Order, type Receipt } from './order.ts';
import type { Hold, HoldRequest, Payer } from './payer.ts';
import { Purchase } from './purchase.ts';

/**
 * A hold outlives the longest response by at least this much, so that it can be settled after a short outage of the
 * event store.
 */
const HOLD_MARGIN_MS = 60_000;

/**
 * Failures that the caller causes. What was billed by then is charged, such as a web search before a model call, hidden
 * reasoning that used up the hold, or what a provider counted of a chat that violates its content policy.
 */
const CALLER_FAILURE_CODES: ReadonlySet<FailureCode> = new Set([
  'invalid_request',
  'content_policy_violation',
  'client_disconnected',
  'hold_used_up',
]);

/** Limits of a paid call. */
export abstract class CallLimits {
  /** Maximum time for a complete response. */
  abstract readonly totalTimeoutMs: number;
  /** Maximum time for which a response is still read after its client has disconnected. */
  abstract readonly drainTimeoutMs: number;
  /**
   * Up to this output limit, in tokens, the maximum price is held in full. With a higher limit or none, only a part is
   * held at first.
   */
  abstract readonly heldInFullTokens: number;
}

/** The connection of the client that waits for a response. */
export interface ClientConnection {
  /** Resolves when the client disconnects before the end of its response. */
  readonly disconnected: Promise<void>;
  /**
   * The response is stored and can be fetched later. After a disconnect it is still read, at most for the drain
   * timeout, even if aborting it would save cost.
   */
  readonly storesResponse: boolean;
}

/** Writes a streamed response. This interface has only what billing needs to know. */
export interface StreamWriter extends ClientConnection {
  /** Whether anything has been sent. Until then a failure gets its own HTTP status. */
  readonly hasStarted: boolean;
  /** Sends the end of the response. What a receipt states is durable; without one the charge is unknown. */
  end(receipt: Receipt | undefined, failure?: unknown): Promise<void> | void;
}

export interface Sold<A> {
  readonly result: A;
  readonly receipt: Receipt;
}

export class BillingEngine {
  private readonly running: RunningTasks;

  constructor(
    private readonly health: EndpointHealth,
    private readonly limits: CallLimits,
    readonly runtime: Runtime,
    readonly costMonitor = new CostMonitor(runtime),
  ) {
    this.running = new RunningTasks(runtime);
  }

  /**
   * Sells a non-streaming response. When `serve` returns, what it has billed is charged. When it throws a failure that
   * the caller caused, the same applies. When it throws anything else, the hold is released and the operator absorbs
   * what was billed.
   * @throws any error of `Payer.hold`, such as a Rejection if the payer cannot pay; UpstreamError if there is no
   *   response; any error that prevented a durable charge
   */
  async sell<A>(
    payer: Payer,
    order: Order,
    serve: (purchase: Purchase) => Promise<A>,
    connection: ClientConnection,
  ): Promise<Sold<A>> {
    const task = this.running.begin(order.id, this.limits.totalTimeoutMs);
    const disconnectHandler = this.createDisconnectHandler(connection, task);
    try {
      const purchase = disconnectHandler.attach(await this.begin(payer, order, task, connection));
      const served = await captureOutcome(serve(purchase));
      if ('failure' in served) {
        await this.endWithoutResult(payer, purchase, false, served.failure);
        throw served.failure;
      }
      return { result: served.result, receipt: await this.settle(payer, purchase, false, purchase.endedBy) };
    } finally {
      disconnectHandler.stop();
      task.finish();
    }
  }

  /**
   * Sells a response while it is generated. `serve` returns when the response has ended: undefined, or the failure that
   * interrupted the response if the client still owes what it received. `serve` throws any other failure, which is
   * handled as in `sell`. After a disconnect a stream that is not stored is aborted if the provider then stops billing.
   * Any other response is still read, for the drain timeout at most.
   * @throws any error of `Payer.hold`; UpstreamError if the response failed before anything was sent; any error that
   *   prevented a durable charge
   */
  async sellStream<C extends StreamWriter>(
    payer: Payer,
    order: Order,
    serve: (purchase: Purchase, client: C) => Promise<UpstreamError | undefined>,
    client: C,
  ): Promise<void> {
    const task = this.running.begin(order.id, this.limits.totalTimeoutMs);
    const disconnectHandler = this.createDisconnectHandler(client, task);
    try {
      const purchase = disconnectHandler.attach(await this.begin(payer, order, task, client));
      const served = await captureOutcome(serve(purchase, client));
      if (!('failure' in served)) {
        const receipt = await this.settle(payer, purchase, client.hasStarted, served.result);
        await client.end(receipt, served.result);
      } else {
        const receipt = await this.endWithoutResult(payer, purchase, client.hasStarted, served.failure);
        if (!client.hasStarted) throw served.failure;
        await client.end(receipt, served.failure);
      }
    } catch (error) {
      if (client.hasStarted) await client.end(undefined, error);
      throw error;
    } finally {
      disconnectHandler.stop();
      task.finish();
    }
  }

  /**
   * Holds money for a job that may outlive this process and that settles its hold itself. Until the hold is transferred
   * to the job (`KeepHold`) it belongs to this process, and ends when the process dies. A client that disconnects while
   * its request waits for the hold gets no job.
   * @throws any error of `Payer.hold`
   */
  async holdForJob(payer: Payer, order: Order, connection: ClientConnection): Promise<Hold> {
    const task = this.running.begin(order.id, this.limits.totalTimeoutMs);
    try {
      return await this.hold(payer, order, task, connection);
    } finally {
      task.finish();
    }
  }

  /**
   * Checks whether the payer can pay for an order, before work that is only done for payers who can. Holds nothing.
   * @throws any error of `Payer.assertAffordable`
   */
  assertAffordable(payer: Payer, order: Order): Promise<void> {
    return payer.assertAffordable(this.createHoldRequest(order));
  }

  /** Ids of the holds of the requests that are running. */
  get runningHoldIds(): readonly string[] {
    return this.running.holdIds;
  }

  /**
   * Waits for all running requests. Those that still run after `timeoutMs` are aborted and end as failed. Ending one
   * may take as long as the event store does not respond.
   */
  drain(timeoutMs: number): Promise<void> {
    return this.running.drain(timeoutMs);
  }

  private async begin(payer: Payer, order: Order, task: RunningTask, connection: ClientConnection): Promise<Purchase> {
    const hold = await this.hold(payer, order, task, connection);
    const { health, costMonitor, runtime } = this;
    return new Purchase(order, { payer, hold }, task, { health, costMonitor, runtime });
  }

  private hold(
    payer: Payer,
    order: Order,
    { signal }: RunningTask,
    { disconnected, storesResponse }: ClientConnection,
  ): Promise<Hold> {
    const signals = storesResponse ? { signal } : { signal, disconnected };
    return payer.hold({ ...this.createHoldRequest(order), ...signals });
  }

  private createHoldRequest(order: Order): HoldRequest {
    const { id, query, fallbacks, priceList, minPrice, maxPrice, partialHold } = order;
    const { totalTimeoutMs, drainTimeoutMs } = this.limits;
    return {
      holdId: id,
      query,
      fallbacks: fallbacks?.map((fallback) => fallback.query),
      priceList: priceList.version,
      minAmount: minPrice,
      maxAmount: maxPrice,
      partial: partialHold,
      updatePartial: order.updatePartialHold,
      lifetimeMs: totalTimeoutMs + drainTimeoutMs + HOLD_MARGIN_MS,
    };
  }

  /**
   * Ends the hold of a failed request: settles it if the caller caused the failure and the usage has a price, else
   * releases it.
   */
  private async endWithoutResult(
    payer: Payer,
    purchase: Purchase,
    hasStarted: boolean,
    failure: UpstreamError,
  ): Promise<Receipt> {
    const { hold, attempts, endpoint } = purchase;
    if (endpoint) this.health.recordFailure(purchase.model, endpoint, failure);
    const charge = purchase.createCharge(failure);
    if (charge && CALLER_FAILURE_CODES.has(failure.code) && charge.price !== '0')
      return this.settle(payer, purchase, hasStarted || failure.code !== 'invalid_request', failure);
    await payer.release(hold, { failure, attempts, absorbed: charge });
    return EMPTY_RECEIPT;
  }

  /** @param isDelivered whether the charge is also due if the end of the response can no longer be sent */
  private async settle(
    payer: Payer,
    purchase: Purchase,
    isDelivered: boolean,
    failure?: UpstreamError,
  ): Promise<Receipt> {
    const { order } = purchase;
    const charge = purchase.createCharge(failure);
    if (!charge) throw new Error(`nothing was billed for hold ${purchase.hold.holdId}`);
    if (order.partialHold !== undefined) await purchase.extendHoldToPrice(money.parseJsonAmount(charge.price));
    return purchase.createReceipt(
      await payer.settle(purchase.hold, charge, { isDelivered, query: purchase.models.servedQuery }),
    );
  }

  /**
   * Creates the handler that aborts a task after its client has disconnected: after the drain timeout at the latest,
   * and earlier if that saves cost and the response is not stored.
   */
  private createDisconnectHandler(connection: ClientConnection, task: RunningTask) {
    let stopDrainTimer = () => {};
    let [isStopped, isDisconnected] = [false, false];
    let startedPurchase: Purchase | undefined;
    void connection.disconnected.then(() => {
      isDisconnected = true;
      if (isStopped) return;
      stopDrainTimer = this.runtime.startTimer(this.limits.drainTimeoutMs, () => task.abort(createDisconnectError()));
      if (!connection.storesResponse) startedPurchase?.abandon(createDisconnectError());
    });
    return {
      attach: (purchase: Purchase): Purchase => {
        startedPurchase = purchase;
        if (isDisconnected && !connection.storesResponse) purchase.abandon(createDisconnectError());
        return purchase;
      },
      stop: () => {
        isStopped = true;
        stopDrainTimer();
      },
    };
  }
}

async function captureOutcome<A>(
  serving: Promise<A>,
): Promise<{ readonly result: A } | { readonly failure: UpstreamError }> {
  try {
    return { result: await serving };
  } catch (error) {
    return { failure: toUpstreamError(error) };
  }
}

/** A request that a shutdown waits for. */
interface RunningTask extends Deadline {
  readonly holdId: string;
  finish(): void;
}

/** The paid requests that this process is serving. */
class RunningTasks {
  private readonly tasks = new Set<RunningTask>();
  private onIdle: (() => void) | undefined;

  constructor(private readonly timers: Pick<Timers, 'startTimer'>) {}

  get holdIds(): readonly string[] {
    return [...this.tasks].map(({ holdId }) => holdId);
  }

  begin(holdId: string, timeoutMs: number): RunningTask {
    const abort = new AbortController();
    const stopTimer = this.timers.startTimer(timeoutMs, () =>
      task.abort(new UpstreamError('timeout', 'The response took too long')),
    );
    const task: RunningTask = {
      holdId,
      signal: abort.signal,
      abort: (failure) => abort.abort(failure),
      finish: () => {
        stopTimer();
        this.tasks.delete(task);
        if (this.tasks.size === 0) this.onIdle?.();
      },
    };
    this.tasks.add(task);
    return task;
  }

  async drain(timeoutMs: number): Promise<void> {
    if (this.tasks.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
    const stopTimer = this.timers.startTimer(timeoutMs, () => {
      for (const task of this.tasks) task.abort(new UpstreamError('shutdown', 'The gateway is shutting down'));
    });
    await idle;
    stopTimer();
  }
}
