import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { Readiness } from '#modules';

/** The requests that this process is answering, at all of its addresses. */
@Injectable()
export class RunningRequests {
  private readonly running = new Set<ServerResponse>();
  private ended: (() => void) | undefined;

  constructor(private readonly readiness: Readiness) {}

  /** Counts from now on. */
  count(fastify: FastifyInstance): void {
    fastify.addHook('onRequest', (_, { raw }, done) => {
      if (this.readiness.draining) raw.setHeader('connection', 'close');
      this.running.add(raw);
      raw.once('close', () => {
        this.running.delete(raw);
        if (this.running.size === 0) this.ended?.();
      });
      done();
    });
  }

  /** From now on this process wants no more, and each connection ends with its answer: the next request takes another. */
  leave(): void {
    this.readiness.draining = true;
  }

  /** Waits until none runs, at most that long. */
  async over(withinMs: number): Promise<void> {
    if (this.running.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = resolve;
    const timer = setTimeout(resolve, withinMs);
    await promise;
    clearTimeout(timer);
  }
}
