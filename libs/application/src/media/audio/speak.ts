/** Text to speech: quote → hold → call → settle. The audio is streamed to the client as it arrives. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import { isFreeTier, type MediaModel } from '#catalogue';
import type { Query } from '#domain';
import { BillingEngine } from '../../billing/billing-engine.ts';
import type { Order } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase } from '../../billing/purchase.ts';
import { type ByteWriter, relayBytes } from '../../billing/relay-bytes.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { SpeechAudio } from '../../providers/media-calls.ts';
import { ProviderRegistry } from '../../providers/provider.ts';
import {
  calculateMaxAudioPrice,
  pickSupportedFields,
  resolveAudioModel,
  selectAudioEndpoints,
  toPrimaryLanguage,
} from './audio-models.ts';
import { selectDefaultSpeechModel, selectVoice } from './voices.ts';

export interface SpeechBody {
  readonly input: string;
  readonly model?: string | null;
  /** OpenAI's clients may send an object with an id. */
  readonly voice?: string | { readonly id: string } | null;
  readonly language?: string | null;
  readonly response_format?: string | null;
  readonly speed?: number | null;
  readonly instructions?: string | null;
  readonly provider?: unknown;
}

export interface SpeakParams {
  readonly requestId: string;
  /** The source of the request, as the query history shows it. */
  readonly source: string;
}

export class Speak extends Command<void> {
  constructor(
    readonly payer: Payer,
    readonly request: SpeakParams,
    readonly body: SpeechBody,
    readonly client: ByteWriter,
  ) {
    super();
  }
}

@CommandHandler(Speak)
export class SpeakHandler implements ICommandHandler<Speak> {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly billing: BillingEngine,
    private readonly providers: ProviderRegistry,
  ) {}

  async execute({ payer, request, body, client }: Speak): Promise<void> {
    const { requestId: id, source } = request;
    const { current: catalogue } = this.catalogues;
    const { priceList } = catalogue;
    const model =
      typeof body.model === 'string'
        ? resolveAudioModel(body.model, 'speech', catalogue)
        : selectDefaultSpeechModel(body.language || undefined, catalogue);
    const usage = { character: countCharacters(body.input, model) };
    const speechParameters = toSpeechParameters(body, model);
    const endpoints = selectAudioEndpoints(model, body.provider);
    const maxPrice = calculateMaxAudioPrice(usage, endpoints);
    const query: Query = { model: model.id, type: 'text_to_speech', source, online: false, free: isFreeTier(model) };
    const order: Order = { id, query, model, endpoints, priceList, minPrice: maxPrice, maxPrice };
    const speak = async (purchase: Purchase) => {
      const { hold, signal } = purchase;
      const { input } = body;
      const call: UpstreamCall<SpeechAudio> = {
        send: (endpoint) => {
          const { voice, ...fields } = speechParameters;
          const parameters = pickSupportedFields<string | number>(endpoint, fields);
          const speech = this.providers.get(hold, endpoint.upstream, 'speech');
          return speech({ model: endpoint.model, input, voice, parameters, signal });
        },
        estimateUsage: async () => usage,
        getLostUsage: () => ({ usage }),
      };
      const { response } = await purchase.call(call);
      const { characters, vendorId } = response;
      purchase.billUsage({
        usage: { character: characters ?? usage.character },
        estimated: characters === undefined,
        ...(vendorId === undefined ? {} : { vendorId }),
      });
      return relayBytes(response, purchase, client);
    };
    await this.billing.sellStream(payer, order, speak, client);
  }
}

/** @throws InvalidRequestError if the input is empty or too long */
function countCharacters(input: string, { id, maxCharacters = 0 }: MediaModel): number {
  if (input.trim() === '') throw new InvalidRequestError(400, 'input must contain text', 'input');
  // A character has at most two UTF-16 code units. Counting the characters of a text of 24 MB would take 200 ms.
  const isFarTooLong = input.length > 2 * maxCharacters;
  const characters = isFarTooLong ? Math.ceil(input.length / 2) : [...input].length;
  if (characters <= maxCharacters) return characters;
  const count = `${isFarTooLong ? 'at least ' : ''}${characters}`;
  const message = `input must have at most ${maxCharacters} characters for the model "${id}"; it has ${count}`;
  throw new InvalidRequestError(400, message, 'input');
}

/** @throws InvalidRequestError if the model has no such voice or language, or the voice does not speak the language */
function toSpeechParameters({ voice, language, response_format, speed, instructions }: SpeechBody, model: MediaModel) {
  const name = typeof voice === 'object' && voice !== null ? voice.id : voice;
  // Clients send an empty text for an option without a value.
  const { id } = selectVoice(model, { voice: name || undefined, language: language || undefined });
  return {
    voice: id,
    language: language ? toPrimaryLanguage(language) : undefined,
    response_format: response_format ?? undefined,
    speed: speed ?? undefined,
    instructions: instructions ?? undefined,
  };
}
