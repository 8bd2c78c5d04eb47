/** Speech to text: quote → hold → call → settle. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { isFreeTier, type MediaModel } from '#catalogue';
import type { Query } from '#domain';
import { BillingEngine, type ClientConnection } from '../../billing/billing-engine.ts';
import type { Order, Receipt } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
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

export const DEFAULT_TRANSCRIPTION_MODEL = 'nova-3';

/** Providers round up to full seconds. */
const ROUNDING_STEP_MS = 1_000;
/** Decoders may add the end of one or two frames. */
const MAX_DECODER_PADDING_MS = 100;
/** A longer duration that a provider reports is implausible. */
const MAX_REPORTED_MS = 30 * 24 * 3_600_000;

export interface TranscriptionBody {
  readonly model?: string | null;
  readonly language?: string | null;
  readonly prompt?: string | null;
  readonly temperature?: number | null;
  readonly provider?: unknown;
}

/** A file on the disk of this host. */
export interface RecordingFile {
  readonly path: string;
  readonly size: number;
}

export interface Transcription {
  readonly transcript: Transcript;
  /** As the provider detected it, else as it was requested, else the model's default. */
  readonly language: string;
  readonly milliseconds: number;
  readonly receipt: Receipt;
}

export interface TranscribeParams {
  readonly requestId: string;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
  readonly connection: ClientConnection;
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
    private readonly billing: BillingEngine,
    private readonly providers: ProviderRegistry,
    private readonly durationCounter: AudioDurationCounter,
  ) {}

  async execute({ payer, request, body, file }: Transcribe): Promise<Transcription> {
    const { requestId: id, source, connection } = request;
    const { current: catalogue } = this.catalogues;
    const { priceList } = catalogue;
    const model = resolveAudioModel(body.model ?? DEFAULT_TRANSCRIPTION_MODEL, 'transcription', catalogue);
    const language = resolveLanguage(model, body.language || undefined);
    const endpoints = selectAudioEndpoints(model, body.provider);
    const recording = await this.loadRecording(file);
    const quoted = roundUpForQuote(recording);
    const maxPrice = calculateMaxAudioPrice({ audioMillisecond: quoted }, endpoints, { language });
    const query: Query = { model: model.id, type: 'speech_to_text', source, online: false, free: isFreeTier(model) };
    const order: Order = { id, query, model, endpoints, priceList, minPrice: maxPrice, maxPrice };
    const transcribe = async (purchase: Purchase) => {
      const call = this.createCall({ purchase, file, recording, language, body });
      const { response } = await purchase.call(call);
      const { vendorId } = response;
      const reportedMs =
        response.milliseconds !== undefined && response.milliseconds <= MAX_REPORTED_MS
          ? response.milliseconds
          : undefined;
      purchase.billUsage({
        usage: { audioMillisecond: reportedMs ?? recording.milliseconds },
        terms: { language },
        estimated: reportedMs === undefined,
        ...(vendorId === undefined ? {} : { vendorId }),
      });
      return { transcript: response, milliseconds: reportedMs ?? recording.milliseconds };
    };
    const { result, receipt } = await this.billing.sell(payer, order, transcribe, connection);
    return {
      transcript: result.transcript,
      milliseconds: result.milliseconds,
      language: result.transcript.language ?? language,
      receipt,
    };
  }

  private createCall({ purchase, file, recording, language, body }: TranscriptionCallParams): UpstreamCall<Transcript> {
    const { hold, signal } = purchase;
    const { mediaType, extension, milliseconds } = recording;
    const usage = { audioMillisecond: milliseconds };
    return {
      send: (endpoint) => {
        const fields = { language, prompt: body.prompt ?? undefined, temperature: body.temperature ?? undefined };
        return this.providers.get(
          hold,
          endpoint.upstream,
          'transcription',
        )({
          model: endpoint.model,
          file: { ...file, mediaType, name: `recording.${extension}` },
          parameters: pickSupportedFields<string | number>(endpoint, fields),
          signal,
        });
      },
      estimateUsage: async () => usage,
      getLostUsage: () => ({ usage, terms: { language } }),
    };
  }

  /** @throws InvalidRequestError if the file is not a recording that can be transcribed */
  private async loadRecording({ path, size }: RecordingFile): Promise<AudioRecording> {
    if (size === 0) throw new InvalidRequestError(400, 'file is empty', 'file');
    const recording = await this.durationCounter.measure(path);
    if (recording) return recording;
    throw new InvalidRequestError(
      400,
      'file must be a recording whose content is mp3, mp4, mpeg, mpga, m4a, wav or webm',
      'file',
    );
  }
}

interface TranscriptionCallParams {
  readonly purchase: Purchase;
  readonly file: RecordingFile;
  readonly recording: AudioRecording;
  readonly language: string;
  readonly body: TranscriptionBody;
}

function roundUpForQuote({ milliseconds }: AudioRecording): number {
  return Math.ceil((milliseconds + MAX_DECODER_PADDING_MS) / ROUNDING_STEP_MS) * ROUNDING_STEP_MS;
}

/** @throws InvalidRequestError that lists the languages of the model */
function resolveLanguage({ choices }: MediaModel, requested: string | undefined): string {
  const languages = choices?.language ?? [];
  if (requested === undefined) return languages[0] ?? 'en';
  const match = [requested.toLowerCase(), toPrimaryLanguage(requested)].find((candidate) =>
    languages.includes(candidate),
  );
  if (match !== undefined) return match;
  throw new InvalidRequestError(400, `language must be one of ${languages.join(', ')} for this model`, 'language');
}
