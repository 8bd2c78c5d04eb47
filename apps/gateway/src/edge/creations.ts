import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { lastValueFrom, type Observable, of } from 'rxjs';
import type { PaidRequests } from './paid-requests.ts';

/** Serves a request that creates something once for its Idempotency-Key, whichever controller it is for. */
export class CreatedOnce implements NestInterceptor {
  constructor(private readonly requests: PaidRequests) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    const isKeyed = request.routeOptions.config?.operation?.creates && 'idempotency-key' in request.headers;
    if (!isKeyed) return next.handle();
    const reply = http.getResponse<FastifyReply>();
    return of(await this.requests.creation(request, reply, () => lastValueFrom(next.handle())));
  }
}
