import {
  applyDecorators,
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { lastValueFrom, type Observable, of } from 'rxjs';
import { Operation, type OperationOptions } from '../../openapi/operation.ts';
import { PaidRequestHandler } from './paid-request-handler.ts';

/** Declares an operation that creates something for free. A request with an Idempotency-Key is served once. */
export function Creation(options: OperationOptions): MethodDecorator {
  return applyDecorators(Operation({ ...options, creates: true }), UseInterceptors(IdempotentCreationInterceptor));
}

/** Attached only to creations: with an interceptor Nest creates an observable for each request, which takes 0.1 ms. */
@Injectable()
class IdempotentCreationInterceptor implements NestInterceptor {
  constructor(private readonly requests: PaidRequestHandler) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const request = http.getRequest<FastifyRequest>();
    if (!('idempotency-key' in request.headers)) return next.handle();
    const reply = http.getResponse<FastifyReply>();
    return of(await this.requests.createOnce(request, reply, () => lastValueFrom(next.handle())));
  }
}
