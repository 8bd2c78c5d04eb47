/** The one money path: hold → serve → settle. Everything that is sold is sold here. */
import type { Charge } from '#domain';
import { type FailureCode, toUpstreamError, UpstreamError } from '../errors.ts';
import { EndpointHealth } from '../routing/endpoint-health.ts';
import type { Hold, Payer } from './payer.ts';
import { type Deadline, EMPTY_RECEIPT, type Order, Purchase, type Receipt } from './purchase.ts';

/** A hold outlives the longest answer by this much: time to settle it, also when the store is away for a while. */
const HOLD_MARGIN_MS = 60_000;

/**
 * What a request comes to nothing by is the caller's own doing: what was used for it until then, such as a search before the
 * model was asked, is charged.
 */
const CALLERS_DOING: ReadonlySet<FailureCode> = new Set(['invalid_request', 'client_disconnected']);

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
  readonly left: Promise<void>;
  /** The answer is kept, and can be had later: it is read on though nobody is there. */
  readonly keeps: boolean;
}

/** Where a streamed answer goes, as far as the money path must know. */
export interface StreamWriter extends ClientConnection {
  /** Whether anything has been sent: until then a failure is answered with a status of its own. */
  readonly started: boolean;
  /** Sends the end, once the charge is durable; without a receipt when the charge is not known. */
  end(receipt: Receipt | undefined, failure?: unknown): Promise<void> | void;
}

export interface Sold<A> {
  readonly answer: A;
  readonly receipt: Receipt;
}

export class BillingEngine {
  private readonly running = new RunningTasks();

  constructor(
    private readonly health: EndpointHealth,
    private readonly limits: CallLimits,
    private readonly alarm: (problem: string, error: unknown) => void,
  ) {}

  /**
   * Sells an answer in one piece. What `serve` has billed is charged when it returns, and when it throws what is the caller's
   * own doing; when it throws anything else, the money is released, and the house bears what was used nevertheless.
   * @throws Rejection when the payer cannot pay; UpstreamError when there is no answer
   */
  async whole<A>(
    payer: Payer,
    sale: Order,
    serve: (purchase: Purchase) => Promise<A>,
    audience: ClientConnection,
  ): Promise<Sold<A>> {
    const task = this.running.begin(this.limits.totalTimeoutMs);
    const patience = this.patience(audience, task);
    try {
      const purchase = patience.with(await this.begin(payer, sale, task));
      const served = await outcomeOf(serve(purchase));
      if ('failure' in served) {
        await this.endInVain(payer, purchase, served.failure);
        throw served.failure;
      }
      return { answer: served.answer, receipt: await this.settle(payer, purchase, purchase.cutBy) };
    } finally {
      patience.over();
      task.finished();
    }
  }

  /**
   * Sells an answer as it is made. `serve` returns when it has ended, with the failure that broke it off if the client
   * owes what it had; it throws when the client owes nothing. When the client goes, the answer is cut short where its
   * vendor stops then; else it is read on for a while, since it will be invoiced.
   * @throws Rejection, UpstreamError as long as nothing was sent; whatever kept the charge from being made durable
   */
  async stream<C extends StreamWriter>(
    payer: Payer,
    sale: Order,
    serve: (purchase: Purchase, client: C) => Promise<UpstreamError | undefined>,
    client: C,
  ): Promise<void> {
    const task = this.running.begin(this.limits.totalTimeoutMs);
    const patience = this.patience(client, task);
    try {
      const purchase = patience.with(await this.begin(payer, sale, task));
      const served = await outcomeOf(serve(purchase, client));
      if (!('failure' in served)) {
        await client.end(await this.settle(payer, purchase, served.answer), served.answer);
      } else {
        const receipt = await this.endInVain(payer, purchase, served.failure);
        if (!client.started) throw served.failure;
        await client.end(receipt, served.failure);
      }
    } catch (error) {
      if (client.started) await client.end(undefined, error);
      throw error;
    } finally {
      patience.over();
      task.finished();
    }
  }

  /**
   * Holds for a job that goes on without this process, which settles by itself. The hold is this process's until it is
   * kept for the job (`KeepHold`): should the process die before, it ends by itself.
   * @throws Rejection when the payer cannot pay
   */
  holdForJob(payer: Payer, sale: Order): Promise<Hold> {
    return this.hold(payer, sale);
  }

  /** Waits until nothing is served any more; what takes longer than `timeoutMs` is cut short and settled as it is. */
  drain(timeoutMs: number): Promise<void> {
    return this.running.drain(timeoutMs);
  }

  private async begin(payer: Payer, sale: Order, task: RunningTask): Promise<Purchase> {
    const funds = { payer, hold: await this.hold(payer, sale) };
    return new Purchase(sale, funds, task, { health: this.health, alarm: this.alarm });
  }

  private hold(payer: Payer, { id, query, priceList, atLeast, atMost, part }: Order): Promise<Hold> {
    const { totalTimeoutMs, drainTimeoutMs } = this.limits;
    const lifetimeMs = totalTimeoutMs + drainTimeoutMs + HOLD_MARGIN_MS;
    return payer.take({ holdId: id, query, priceList: priceList.version, atLeast, atMost, part, lifetimeMs });
  }

  /** Ends a request that nothing came of. */
  private async endInVain(payer: Payer, purchase: Purchase, failure: UpstreamError): Promise<Receipt> {
    const { hold, attempts, sale, endpoint } = purchase;
    if (endpoint) this.health.failed(sale.model, endpoint, failure);
    const charge = purchase.charge(failure);
    if (charge && CALLERS_DOING.has(failure.code) && charge.price !== '0') return this.settle(payer, purchase, failure);
    await payer.release(hold, { failure, attempts, absorbed: charge }).catch(this.unstated(purchase, charge));
    return EMPTY_RECEIPT;
  }

  private async settle(payer: Payer, purchase: Purchase, failure?: UpstreamError): Promise<Receipt> {
    const { sale } = purchase;
    const charge = purchase.charge(failure);
    if (!charge) throw new Error(`nothing was billed for ${purchase.hold.holdId}`);
    if (sale.part !== undefined) await purchase.cover(charge);
    return purchase.receipt(await payer.settle(purchase.hold, charge).catch(this.unstated(purchase, charge)));
  }

  /**
   * What could not be stated before its hold expired is in no books, though vendors invoice it: it is said in the log. It counts
   * for no limit, since it is the store's doing.
   */
  private unstated({ hold }: Purchase, charge: Charge | undefined) {
    return (error: unknown): never => {
      if (charge) this.alarm(`hold ${hold.holdId} of ${hold.payer}: ${charge.cost} pUSD of use are not stated`, error);
      throw error;
    };
  }

  /** A client that goes is not waited for longer than it takes to drain, and not at all where that saves anything. */
  private patience({ left, keeps }: ClientConnection, task: RunningTask) {
    let drain: NodeJS.Timeout | undefined;
    let [isOver, isGone] = [false, false];
    let begun: Purchase | undefined;
    void left.then(() => {
      isGone = true;
      if (isOver) return;
      drain = setTimeout(() => task.cutShort(createDisconnectError()), this.limits.drainTimeoutMs);
      if (!keeps) begun?.abandon(createDisconnectError());
    });
    return {
      with: (purchase: Purchase): Purchase => {
        begun = purchase;
        if (isGone && !keeps) purchase.abandon(createDisconnectError());
        return purchase;
      },
      over: () => {
        isOver = true;
        clearTimeout(drain);
      },
    };
  }
}

async function outcomeOf<A>(
  serving: Promise<A>,
): Promise<{ readonly answer: A } | { readonly failure: UpstreamError }> {
  try {
    return { answer: await serving };
  } catch (error) {
    return { failure: toUpstreamError(error) };
  }
}

export function createDisconnectError(): UpstreamError {
  return new UpstreamError('client_disconnected', 'The client went away and the answer took too long');
}

/** Work that a shutdown waits for. */
interface RunningTask extends Deadline {
  finished(): void;
}

/** The requests that this process is serving. */
class RunningTasks {
  private readonly tasks = new Set<RunningTask>();
  private idle: (() => void) | undefined;

  begin(timeoutMs: number): RunningTask {
    const abort = new AbortController();
    const timer = setTimeout(() => task.cutShort(new UpstreamError('timeout', 'The answer took too long')), timeoutMs);
    const task: RunningTask = {
      signal: abort.signal,
      cutShort: (failure) => abort.abort(failure),
      finished: () => {
        clearTimeout(timer);
        this.tasks.delete(task);
        if (this.tasks.size === 0) this.idle?.();
      },
    };
    this.tasks.add(task);
    return task;
  }

  /** Waits until all tasks have finished; those that take longer than `timeoutMs` are cut short and settled as they are. */
  async drain(timeoutMs: number): Promise<void> {
    if (this.tasks.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.idle = resolve;
    });
    const timer = setTimeout(() => {
      for (const task of this.tasks) task.cutShort(new UpstreamError('shutdown', 'The gateway is shutting down'));
    }, timeoutMs);
    await idle;
    clearTimeout(timer);
  }
}
