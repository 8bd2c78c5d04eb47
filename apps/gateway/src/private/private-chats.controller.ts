import type { Readable } from 'node:stream';
import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, EncryptedErrorResponse, RelayPrivateChat } from '#application';
import { ENCAPSULATED_KEY, isHeaderValue, RESPONSE_NONCE } from '#ehbp';
import { Authenticated } from '../edge/authentication/authenticator.ts';
import { InvalidRequest } from '../edge/errors/errors.ts';
import { PaidRequests, sourceOf } from '../edge/idempotency/paid-request-handler.ts';
import { Operation } from '../openapi/operation.ts';
import { Attestations } from './attestations.ts';
import * as operations from './private-chats.operations.ts';
import { PrivateClient } from './private-client.ts';

@Controller()
export class PrivateChatsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequests,
    private readonly attestations: Attestations,
  ) {}

  @Post('private/v1/chat/completions')
  @HttpCode(200)
  @Operation(operations.createPrivateChat)
  async create(@Authenticated() caller: Caller, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    try {
      const asked = askedIn(request);
      await this.paid.once(request, reply, caller, async (payer) => {
        const about = { requestId: request.id, source: sourceOf(request), ...asked };
        try {
          await this.commands.execute(new RelayPrivateChat(payer, about, new PrivateClient(reply)));
        } catch (error) {
          if (!(error instanceof EncryptedErrorResponse)) throw error;
          if (error.isOfOtherKey) this.attestations.forget(asked.model);
          sendRefusal(reply, error);
        }
      });
    } finally {
      leaveUnread(request);
    }
  }
}

/** What nobody reads any more of a body must not stand before the next request of its connection. */
function leaveUnread({ raw }: FastifyRequest): void {
  if (!raw.complete) raw.unpipe().resume();
}

/** @throws InvalidRequest, before anything is held */
function askedIn({ headers, body }: FastifyRequest) {
  if (headers['idempotency-key'] !== undefined)
    throw new InvalidRequest('A request that is encrypted anew cannot be known again', 'Idempotency-Key');
  const model = headers['x-private-model'];
  if (typeof model !== 'string') throw new InvalidRequest('The header X-Private-Model is missing', 'X-Private-Model');
  const encapsulatedKey = headers[ENCAPSULATED_KEY];
  if (typeof encapsulatedKey !== 'string' || !isHeaderValue(encapsulatedKey))
    throw new InvalidRequest('Ehbp-Encapsulated-Key must be 64 lower-case hexadecimal digits', 'Ehbp-Encapsulated-Key');
  const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  if (body === undefined || length === 0) throw new InvalidRequest('The body is missing');
  const stream = /\btext\/event-stream\b/i.test(headers.accept ?? '');
  return { model, encapsulatedKey, stream, length, body: body as Readable };
}

/** As the enclave wrote it: only its client can read it, or it says to ask for the key again. */
function sendRefusal(reply: FastifyReply, { answer, body }: EncryptedErrorResponse): void {
  const { status, mediaType, nonce } = answer;
  reply.headers({ 'cache-control': 'no-store', ...(nonce === undefined ? {} : { [RESPONSE_NONCE]: nonce }) });
  reply.status(status).type(mediaType).send(body);
}
