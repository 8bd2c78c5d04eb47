/** Speech to text: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { MediaModel } from '#catalogue';
import type { Query } from '#domain';
import { BillingEngine, type ClientConnection } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Order, Purchase, Receipt } from '../../billing/purchase.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { Transcript } from '../../providers/media-calls.ts';
import { ProviderRegistry } from '../../providers/provider.ts';
import { AudioDurationCounter, type AudioRecording } from './audio-duration.ts';
import {
  calculateMaxAudioPrice,
  pickSupportedFields,
  resolveAudioModel,
  selectAudioEndpoints,
  toPrimaryLanguage,
} from './audio-models.ts';

export const DEFAULT_TRANSCRIBER = 'nova-3';

/** Vendors round up to whole seconds, and decoders add the end of a frame or two. */
const ROUNDED_TO_MS = 1_000;
const DECODERS_ADD_MS = 100;
/** A vendor that reports a longer recording is not believed. */
const MOST_MS = 30 * 24 * 3_600_000;

export interface TranscriptionBody {
  readonly model?: string | null;
  readonly language?: string | null;
  readonly prompt?: string | null;
  readonly temperature?: number | null;
  readonly provider?: unknown;
}

/** A file on this machine's disk. */
export interface RecordingFile {
  readonly path: string;
  readonly size: number;
}

export interface Transcription {
  readonly transcript: Transcript;
  /** As the vendor found it out; else as it was told. */
  readonly language: string;
  readonly milliseconds: number;
  readonly receipt: Receipt;
}

export interface TranscribeParams {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
  readonly audience: ClientConnection;
}

export class Transcribe extends Command<Transcription> {
  constructor(
    readonly payer: Payer,
    readonly request: TranscribeParams,
    readonly body: TranscriptionBody,
    readonly file: RecordingFile,
  ) {
    super();
  }
}

@CommandHandler(Transcribe)
export class TranscribeHandler implements ICommandHandler<Transcribe> {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly paying: BillingEngine,
    private readonly providers: ProviderRegistry,
    private readonly lengths: AudioDurationCounter,
  ) {}

  async execute({ payer, request, body, file }: Transcribe): Promise<Transcription> {
    const { requestId: id, source, audience } = request;
    const { current: catalogue } = this.catalogues;
    const { priceList } = catalogue;
    const model = resolveAudioModel(body.model ?? DEFAULT_TRANSCRIBER, 'transcription', catalogue);
    const language = languageFor(model, body.language || undefined);
    const endpoints = selectAudioEndpoints(model, body.provider);
    const recording = await this.recordingIn(file);
    const quoted = quotedFor(recording);
    const most = calculateMaxAudioPrice({ audioMillisecond: quoted }, endpoints, { language });
    const query: Query = { model: model.id, type: 'speech_to_text', source, online: false, free: most === 0n };
    const sale: Order = { id, query, model, endpoints, priceList, atLeast: most, atMost: most };
    const transcribe = async (purchase: Purchase) => {
      const call = this.call({ purchase, file, recording, language, body });
      const { answer } = await purchase.ask(call);
      const { vendorId } = answer;
      const said =
        answer.milliseconds !== undefined && answer.milliseconds <= MOST_MS ? answer.milliseconds : undefined;
      purchase.billMade({
        usage: { audioMillisecond: said ?? recording.milliseconds },
        terms: { language },
        estimated: said === undefined,
        ...(vendorId === undefined ? {} : { vendorId }),
      });
      return { answer, milliseconds: said ?? recording.milliseconds };
    };
    const { answer, receipt } = await this.paying.whole(payer, sale, transcribe, audience);
    return {
      transcript: answer.answer,
      milliseconds: answer.milliseconds,
      language: answer.answer.language ?? language,
      receipt,
    };
  }

  private call({ purchase, file, recording, language, body }: Called): UpstreamCall<Transcript> {
    const { hold, signal } = purchase;
    const { mediaType, extension, milliseconds } = recording;
    const usage = { audioMillisecond: milliseconds };
    return {
      make: (endpoint) => {
        const said = { language, prompt: body.prompt ?? undefined, temperature: body.temperature ?? undefined };
        return this.providers.of(
          hold,
          endpoint.upstream,
          'transcription',
        )({
          model: endpoint.model,
          file: { ...file, mediaType, name: `recording.${extension}` },
          parameters: pickSupportedFields<string | number>(endpoint, said),
          signal,
        });
      },
      counted: async () => usage,
      lost: () => ({ usage, terms: { language } }),
    };
  }

  /** @throws InvalidRequestError when it is none that can be transcribed */
  private async recordingIn({ path, size }: RecordingFile): Promise<AudioRecording> {
    if (size === 0) throw new InvalidRequestError(400, 'file is empty', 'file');
    const recording = await this.lengths.of(path);
    if (recording) return recording;
    throw new InvalidRequestError(
      400,
      'file must be a recording: mp3, mp4, mpeg, mpga, m4a, wav or webm by its content',
      'file',
    );
  }
}

interface Called {
  readonly purchase: Purchase;
  readonly file: RecordingFile;
  readonly recording: AudioRecording;
  readonly language: string;
  readonly body: TranscriptionBody;
}

function quotedFor({ milliseconds }: AudioRecording): number {
  return Math.ceil((milliseconds + DECODERS_ADD_MS) / ROUNDED_TO_MS) * ROUNDED_TO_MS;
}

/** @throws InvalidRequestError that lists the languages of the model */
function languageFor({ choices }: MediaModel, asked: string | undefined): string {
  const languages = choices?.language ?? [];
  if (asked === undefined) return languages[0] ?? 'en';
  const found = [asked.toLowerCase(), toPrimaryLanguage(asked)].find((each) => languages.includes(each));
  if (found !== undefined) return found;
  throw new InvalidRequestError(400, `language must be one of ${languages.join(', ')} for this model`, 'language');
}
