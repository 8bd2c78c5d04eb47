import type { Endpoint } from '#catalogue';
import type { Query } from '#domain';
import type { UpstreamError } from '../errors.ts';
import type { Order, OrderedModel } from './order.ts';

/** The models of an order while it is served: the one that is called, and those that may follow. */
export class OrderedModels {
  current: OrderedModel;
  /** Whether an endpoint of any model has responded. */
  hasResponded = false;
  private hasStarted = false;
  private readonly fallbacks: OrderedModel[];

  constructor(private readonly order: Order) {
    this.current = order;
    this.fallbacks = [...(order.fallbacks ?? [])];
  }

  get isLast(): boolean {
    return this.fallbacks.length === 0;
  }

  /** What was served, if another model than the first is called. */
  get servedQuery(): Query | undefined {
    return this.current === this.order ? undefined : this.current.query;
  }

  /** Returns the endpoints of the current model, which is called from now on. */
  start(): Endpoint[] {
    this.hasStarted = true;
    return [...this.current.endpoints];
  }

  /**
   * Whether the next model may be called after a failure of the current one: only before any part of a response. Unlike
   * another endpoint, another model may accept a request that the first one rejects.
   */
  canChange({ deliveredText, isInternal }: UpstreamError): boolean {
    return !this.isLast && this.hasStarted && !this.hasResponded && deliveredText === undefined && !isInternal;
  }

  change(): void {
    this.current = this.fallbacks.shift() ?? this.current;
    this.hasStarted = false;
  }
}
