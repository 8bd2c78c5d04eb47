/** The one money path: hold → serve → settle. Everything that is sold is sold here. */
import type { Charge } from '#domain';
import { type FailureCode, toUpstreamError, UpstreamError } from '../errors.ts';
import { EndpointHealth } from '../routing/endpoint-health.ts';
import { type Deadline, EMPTY_RECEIPT, type Order, type Receipt } from './order.ts';
import type { Hold, Payer } from './payer.ts';
import { Purchase } from './purchase.ts';

/** A hold outlives the longest answer by this much: time to settle it, also when the store is away for a while. */
const HOLD_MARGIN_MS = 60_000;

/**
 * What a request comes to nothing by is the caller's own doing: what was used for it until then, such as a search before the
 * model was asked, is charged.
 */
const CALLER_FAILURE_CODES: ReadonlySet<FailureCode> = new Set(['invalid_request', 'client_disconnected']);

/** How long a paid call may take. */
export abstract class CallLimits {
  /** Longest time for a whole answer. */
  abstract readonly totalTimeoutMs: number;
  /** How long an answer is read on when its client has gone. */
  abstract readonly drainTimeoutMs: number;
  /** Limits of output up to so many tokens are meant, and held for in full. */
  abstract readonly heldInFullTokens: number;
}

/** Who waits for an answer. */
export interface ClientConnection {
  /** Resolves when the client has gone before the end. */
  readonly disconnected: Promise<void>;
  /** The answer is kept, and can be had later: it is read on though nobody is there. */
  readonly storesResponse: boolean;
}

/** Where a streamed answer goes, as far as the money path must know. */
export interface StreamWriter extends ClientConnection {
  /** Whether anything has been sent: until then a failure is answered with a status of its own. */
  readonly hasStarted: boolean;
  /** Sends the end, once the charge is durable; without a receipt when the charge is not known. */
  end(receipt: Receipt | undefined, failure?: unknown): Promise<void> | void;
}

export interface Sold<A> {
  readonly result: A;
  readonly receipt: Receipt;
}

export class BillingEngine {
  private readonly running = new RunningTasks();

  constructor(
    private readonly health: EndpointHealth,
    private readonly limits: CallLimits,
    private readonly reportError: (problem: string, error: unknown) => void,
  ) {}

  /**
   * Sells an answer in one piece. What `serve` has billed is charged when it returns, and when it throws what is the caller's
   * own doing; when it throws anything else, the money is released, and the house bears what was used nevertheless.
   * @throws Rejection when the payer cannot pay; UpstreamError when there is no answer
   */
  async sell<A>(
    payer: Payer,
    order: Order,
    serve: (purchase: Purchase) => Promise<A>,
    connection: ClientConnection,
  ): Promise<Sold<A>> {
    const task = this.running.begin(this.limits.totalTimeoutMs);
    const disconnectHandler = this.createDisconnectHandler(connection, task);
    try {
      const purchase = disconnectHandler.attach(await this.begin(payer, order, task));
      const served = await captureOutcome(serve(purchase));
      if ('failure' in served) {
        await this.endWithoutResult(payer, purchase, served.failure);
        throw served.failure;
      }
      return { result: served.result, receipt: await this.settle(payer, purchase, purchase.endedBy) };
    } finally {
      disconnectHandler.stop();
      task.finish();
    }
  }

  /**
   * Sells an answer as it is made. `serve` returns when it has ended, with the failure that broke it off if the client
   * owes what it had; it throws when the client owes nothing. When the client goes, the answer is cut short where its
   * vendor stops then; else it is read on for a while, since it will be invoiced.
   * @throws Rejection, UpstreamError as long as nothing was sent; whatever kept the charge from being made durable
   */
  async sellStream<C extends StreamWriter>(
    payer: Payer,
    order: Order,
    serve: (purchase: Purchase, client: C) => Promise<UpstreamError | undefined>,
    client: C,
  ): Promise<void> {
    const task = this.running.begin(this.limits.totalTimeoutMs);
    const disconnectHandler = this.createDisconnectHandler(client, task);
    try {
      const purchase = disconnectHandler.attach(await this.begin(payer, order, task));
      const served = await captureOutcome(serve(purchase, client));
      if (!('failure' in served)) {
        await client.end(await this.settle(payer, purchase, served.result), served.result);
      } else {
        const receipt = await this.endWithoutResult(payer, purchase, served.failure);
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
   * Holds for a job that goes on without this process, which settles by itself. The hold is this process's until it is
   * kept for the job (`KeepHold`): should the process die before, it ends by itself.
   * @throws Rejection when the payer cannot pay
   */
  holdForJob(payer: Payer, order: Order): Promise<Hold> {
    return this.hold(payer, order);
  }

  /** Waits until nothing is served any more; what takes longer than `timeoutMs` is cut short and settled as it is. */
  drain(timeoutMs: number): Promise<void> {
    return this.running.drain(timeoutMs);
  }

  private async begin(payer: Payer, order: Order, task: RunningTask): Promise<Purchase> {
    const funds = { payer, hold: await this.hold(payer, order) };
    return new Purchase(order, funds, task, { health: this.health, reportError: this.reportError });
  }

  private hold(payer: Payer, { id, query, priceList, minPrice, maxPrice, partialHold }: Order): Promise<Hold> {
    const { totalTimeoutMs, drainTimeoutMs } = this.limits;
    const lifetimeMs = totalTimeoutMs + drainTimeoutMs + HOLD_MARGIN_MS;
    return payer.hold({
      holdId: id,
      query,
      priceList: priceList.version,
      minAmount: minPrice,
      maxAmount: maxPrice,
      partial: partialHold,
      lifetimeMs,
    });
  }

  /** Ends a request that nothing came of. */
  private async endWithoutResult(payer: Payer, purchase: Purchase, failure: UpstreamError): Promise<Receipt> {
    const { hold, attempts, order, endpoint } = purchase;
    if (endpoint) this.health.recordFailure(order.model, endpoint, failure);
    const charge = purchase.createCharge(failure);
    if (charge && CALLER_FAILURE_CODES.has(failure.code) && charge.price !== '0')
      return this.settle(payer, purchase, failure);
    await payer
      .release(hold, { failure, attempts, absorbed: charge })
      .catch(this.createUnrecordedReporter(purchase, charge));
    return EMPTY_RECEIPT;
  }

  private async settle(payer: Payer, purchase: Purchase, failure?: UpstreamError): Promise<Receipt> {
    const { order } = purchase;
    const charge = purchase.createCharge(failure);
    if (!charge) throw new Error(`nothing was billed for ${purchase.hold.holdId}`);
    if (order.partialHold !== undefined) await purchase.extendHoldToPrice(charge);
    return purchase.createReceipt(
      await payer.settle(purchase.hold, charge).catch(this.createUnrecordedReporter(purchase, charge)),
    );
  }

  /**
   * What could not be stated before its hold expired is in no books, though vendors invoice it: it is said in the log. It counts
   * for no limit, since it is the store's doing.
   */
  private createUnrecordedReporter({ hold }: Purchase, charge: Charge | undefined) {
    return (error: unknown): never => {
      if (charge)
        this.reportError(`hold ${hold.holdId} of ${hold.payer}: ${charge.cost} pUSD of use are not stated`, error);
      throw error;
    };
  }

  /** A client that goes is not waited for longer than it takes to drain, and not at all where that saves anything. */
  private createDisconnectHandler({ disconnected, storesResponse }: ClientConnection, task: RunningTask) {
    let drainTimer: NodeJS.Timeout | undefined;
    let [isStopped, isDisconnected] = [false, false];
    let startedPurchase: Purchase | undefined;
    void disconnected.then(() => {
      isDisconnected = true;
      if (isStopped) return;
      drainTimer = setTimeout(() => task.abort(createDisconnectError()), this.limits.drainTimeoutMs);
      if (!storesResponse) startedPurchase?.abandon(createDisconnectError());
    });
    return {
      attach: (purchase: Purchase): Purchase => {
        startedPurchase = purchase;
        if (isDisconnected && !storesResponse) purchase.abandon(createDisconnectError());
        return purchase;
      },
      stop: () => {
        isStopped = true;
        clearTimeout(drainTimer);
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

export function createDisconnectError(): UpstreamError {
  return new UpstreamError('client_disconnected', 'The client went away and the answer took too long');
}

/** Work that a shutdown waits for. */
interface RunningTask extends Deadline {
  finish(): void;
}

/** The requests that this process is serving. */
class RunningTasks {
  private readonly tasks = new Set<RunningTask>();
  private onIdle: (() => void) | undefined;

  begin(timeoutMs: number): RunningTask {
    const abort = new AbortController();
    const timer = setTimeout(() => task.abort(new UpstreamError('timeout', 'The answer took too long')), timeoutMs);
    const task: RunningTask = {
      signal: abort.signal,
      abort: (failure) => abort.abort(failure),
      finish: () => {
        clearTimeout(timer);
        this.tasks.delete(task);
        if (this.tasks.size === 0) this.onIdle?.();
      },
    };
    this.tasks.add(task);
    return task;
  }

  /** Waits until all tasks have finished; those that take longer than `timeoutMs` are cut short and settled as they are. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.tasks.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
    const timer = setTimeout(() => {
      for (const task of this.tasks) task.abort(new UpstreamError('shutdown', 'The gateway is shutting down'));
    }, timeoutMs);
    await idle;
    clearTimeout(timer);
  }
}
