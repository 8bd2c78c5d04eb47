import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { lastValueFrom, type Observable, of } from 'rxjs';
import { PaidRequests } from './paid-requests.ts';

/**
 * Serves a request that creates something once for its Idempotency-Key, whichever controller it is for. Operations that
 * create have it, and no others: with an interceptor Nest makes an observable of each request, which takes 0.1 ms.
 */
@Injectable()
export class CreatedOnce implements NestInterceptor {
  constructor(private readonly requests: PaidRequests) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    if (!('idempotency-key' in request.headers)) return next.handle();
    const reply = http.getResponse<FastifyReply>();
    return of(await this.requests.creation(request, reply, () => lastValueFrom(next.handle())));
  }
}
