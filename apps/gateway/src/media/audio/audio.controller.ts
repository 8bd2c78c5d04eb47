import { Body, Controller, Get, HttpCode, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, CatalogueService, Speak, supportsLanguage, Transcribe } from '#application';
import { CurrentCaller } from '../../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../../edge/idempotency/paid-request-handler.ts';
import { Uploaded, type UploadedFile } from '../../edge/uploads/upload.ts';
import { Operation } from '../../openapi/operation.ts';
import * as operations from './audio.operations.ts';
import { SpeechRequest, TranscriptionRequest, VoicesQuery } from './audio.requests.ts';
import { listAvailableAudioModels, toAudioModelJson, toVoicesJson } from './audio-lists.ts';
import { AudioStreamWriter } from './audio-stream-writer.ts';
import { formatTranscript } from './transcript-wire.ts';

/** At the main address, and at that of sound alone. */
const at = (path: string) => [`v1/audio/${path}`, `audio/${path}`, `api/v1/audio/${path}`];

@Controller()
export class AudioController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly catalogues: CatalogueService,
  ) {}

  @Post(at('transcriptions'))
  @HttpCode(200)
  @Operation(operations.transcribe)
  async transcribe(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: TranscriptionRequest,
    @Uploaded() [file]: readonly UploadedFile[],
  ) {
    await this.paid.once(request, reply, request.caller, async (payer, audience) => {
      const about = { requestId: request.id, source: getQuerySource(request), connection: audience };
      const transcription = await this.commands.execute(new Transcribe(payer, about, body, file as UploadedFile));
      const answer = formatTranscript(transcription, body.response_format ?? 'json');
      reply.type(answer.mediaType).send(answer.body);
    });
  }

  @Post(at('speech'))
  @HttpCode(200)
  @Operation(operations.speak)
  async speak(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: SpeechRequest,
  ) {
    await this.paid.once(request, reply, caller, (payer) => {
      const about = { requestId: request.id, source: getQuerySource(request) };
      return this.commands.execute(new Speak(payer, about, body, new AudioStreamWriter(reply)));
    });
  }

  @Get(at('voices'))
  @Operation(operations.listVoices)
  voices(@Query() { language }: VoicesQuery) {
    const wanted = language?.toLowerCase().split(/[-_]/)[0] || undefined;
    const data = listAvailableAudioModels(this.catalogues.current.models).flatMap((model) => {
      const voices = model.voices.filter((voice) => wanted === undefined || supportsLanguage(model, voice, wanted));
      return toVoicesJson({ ...model, voices });
    });
    return { object: 'list', data };
  }

  @Get(at('models'))
  @Operation(operations.listAudioModels)
  models() {
    return { object: 'list', data: listAvailableAudioModels(this.catalogues.current.models).map(toAudioModelJson) };
  }
}
