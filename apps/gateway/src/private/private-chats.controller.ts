import type { Readable } from 'node:stream';
import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, EncryptedErrorResponse, type Payer, RelayPrivateChat } from '#application';
import { ENCAPSULATED_KEY_HEADER, isHeaderValue, RESPONSE_NONCE_HEADER } from '#ehbp';
import { CurrentCaller } from '../edge/authentication/authenticator.ts';
import { BadRequestError } from '../edge/errors/errors.ts';
import { getQuerySource, PaidRequestHandler } from '../edge/idempotency/paid-request-handler.ts';
import { Operation } from '../openapi/operation.ts';
import { AttestationCache } from './attestation-cache.ts';
import { CiphertextHttpWriter } from './ciphertext-writer.ts';
import * as operations from './private-chats.operations.ts';

@Controller()
export class PrivateChatsController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly attestations: AttestationCache,
  ) {}

  @Post('private/v1/chat/completions')
  @HttpCode(200)
  @Operation(operations.createPrivateChat)
  async create(@CurrentCaller() caller: Caller, @Req() request: FastifyRequest, @Res() reply: FastifyReply) {
    try {
      const chatRequest = parseChatRequest(request);
      const serve = async (payer: Payer) => {
        const params = { requestId: request.id, source: getQuerySource(request), ...chatRequest };
        try {
          await this.commands.execute(new RelayPrivateChat(payer, params, new CiphertextHttpWriter(reply)));
        } catch (error) {
          if (!(error instanceof EncryptedErrorResponse)) throw error;
          if (error.isKeyMismatch) this.attestations.evict(chatRequest.model);
          sendEncryptedError(reply, error);
        }
      };
      // The body is relayed as it arrives, and every request is encrypted with a key of its own.
      await this.paid.serveOnce(request, reply, caller, { serve, isRepeatable: false });
    } finally {
      discardUnreadBody(request);
    }
  }
}

/** Reads and drops the rest of the body. Unread bytes would block the next request on the same connection. */
function discardUnreadBody({ raw }: FastifyRequest): void {
  if (!raw.complete) raw.unpipe().resume();
}

/** @throws BadRequestError for a missing, invalid or unsupported header, or a missing body */
function parseChatRequest({ headers, body }: FastifyRequest) {
  if (headers['idempotency-key'] !== undefined)
    throw new BadRequestError('Idempotency-Key is not supported for encrypted requests', 'Idempotency-Key');
  const model = headers['x-private-model'];
  if (typeof model !== 'string') throw new BadRequestError('Missing header X-Private-Model', 'X-Private-Model');
  const encapsulatedKey = headers[ENCAPSULATED_KEY_HEADER];
  if (typeof encapsulatedKey !== 'string' || !isHeaderValue(encapsulatedKey))
    throw new BadRequestError(
      'Ehbp-Encapsulated-Key must be 64 lower-case hexadecimal digits',
      'Ehbp-Encapsulated-Key',
    );
  const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length']);
  if (body === undefined || length === 0) throw new BadRequestError('Missing request body');
  const stream = /\btext\/event-stream\b/i.test(headers.accept ?? '');
  return { model, encapsulatedKey, stream, contentLength: length, body: body as Readable };
}

/** Sends the enclave's error response: encrypted, so that only the client can read it, or a key mismatch (422). */
function sendEncryptedError(reply: FastifyReply, { head, body }: EncryptedErrorResponse): void {
  const { status, mediaType, nonce } = head;
  if (nonce !== undefined) reply.header(RESPONSE_NONCE_HEADER, nonce);
  reply.status(status).type(mediaType).send(body);
}
