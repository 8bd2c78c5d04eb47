import { Body, Controller, Get, HttpCode, Post, Query, Req, Res } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Caller,
  CatalogueService,
  isListedForLanguage,
  listAvailableAudioModels,
  Speak,
  Transcribe,
} from '#application';
import { CurrentCaller } from '../../edge/authentication/authenticator.ts';
import { getQuerySource, PaidRequestHandler } from '../../edge/idempotency/paid-request-handler.ts';
import { toRetirementJson } from '../../edge/responses/retirement-notices.ts';
import { Uploaded, type UploadedFile } from '../../edge/uploads/upload.ts';
import { Operation } from '../../openapi/operation.ts';
import * as operations from './audio.operations.ts';
import { SpeechRequest, TranscriptionRequest, VoicesQuery } from './audio.requests.ts';
import { toAudioModelJson, toVoicesJson } from './audio-lists.ts';
import { AudioStreamWriter } from './audio-stream-writer.ts';
import { formatTranscript } from './transcript-wire.ts';

/** Returns the paths of a route. The audio port serves only the last one. */
const toAudioPaths = (path: string) => [`v1/audio/${path}`, `audio/${path}`, `api/v1/audio/${path}`];

@Controller()
export class AudioController {
  constructor(
    private readonly commands: CommandBus,
    private readonly paid: PaidRequestHandler,
    private readonly catalogues: CatalogueService,
  ) {}

  @Post(toAudioPaths('transcriptions'))
  @HttpCode(200)
  @Operation(operations.transcribe)
  async transcribe(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: TranscriptionRequest,
    @Uploaded() [file]: readonly UploadedFile[],
  ) {
    await this.paid.serveOnce(request, reply, request.caller, async (payer, connection) => {
      const context = { requestId: request.id, source: getQuerySource(request), connection };
      const transcription = await this.commands.execute(new Transcribe(payer, context, body, file as UploadedFile));
      const formatted = formatTranscript(transcription, body.response_format ?? 'json');
      reply.type(formatted.mediaType).send(formatted.body);
    });
  }

  @Post(toAudioPaths('speech'))
  @HttpCode(200)
  @Operation(operations.speak)
  async speak(
    @CurrentCaller() caller: Caller,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Body() body: SpeechRequest,
  ) {
    await this.paid.serveOnce(request, reply, caller, (payer) => {
      const context = { requestId: request.id, source: getQuerySource(request) };
      return this.commands.execute(new Speak(payer, context, body, new AudioStreamWriter(reply)));
    });
  }

  @Get(toAudioPaths('voices'))
  @Operation(operations.listVoices)
  listVoices(@Query() { language }: VoicesQuery) {
    const data = listAvailableAudioModels(this.catalogues.current.models).flatMap((model) => {
      const voices = language ? model.voices.filter((voice) => isListedForLanguage(voice, language)) : model.voices;
      return toVoicesJson({ ...model, voices });
    });
    return { object: 'list', data };
  }

  @Get(toAudioPaths('models'))
  @Operation(operations.listAudioModels)
  listModels() {
    const { current } = this.catalogues;
    const data = listAvailableAudioModels(current.models).map((model) => ({
      ...toAudioModelJson(model),
      ...toRetirementJson(current.findRetirement(model)),
    }));
    return { object: 'list', data };
  }
}
