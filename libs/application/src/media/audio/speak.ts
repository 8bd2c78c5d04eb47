/** Text to speech: quote → hold → call → settle. The sound goes to the client as it comes. */
import { Command, CommandHandler, type ICommandHandler } from '@nestjs/cqrs';
import type { MediaModel } from '#catalogue';
import type { Query } from '#domain';
import { Paying } from '../../billing/billing-engine.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Purchase, Sale } from '../../billing/purchase.ts';
import { type BytesClient, relayed } from '../../billing/relay-bytes.ts';
import type { UpstreamCall } from '../../billing/upstream-call.ts';
import { Catalogues } from '../../catalogue-service.ts';
import { UnservableRequest } from '../../errors.ts';
import type { Speech } from '../../providers/media-calls.ts';
import { Providers } from '../../providers/provider.ts';
import { known, mostFor, primary, soundEndpoints, soundModel } from './audio-models.ts';
import { voiceFor } from './voices.ts';

export const DEFAULT_SPEAKER = 'deepgram_aura_2';

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

export interface SpeechRequest {
  readonly requestId: string;
  /** Where the request came from, as the query history shows it. */
  readonly source: string;
}

export class Speak extends Command<void> {
  constructor(
    readonly payer: Payer,
    readonly request: SpeechRequest,
    readonly body: SpeechBody,
    readonly client: BytesClient,
  ) {
    super();
  }
}

@CommandHandler(Speak)
export class SpeakHandler implements ICommandHandler<Speak> {
  constructor(
    private readonly catalogues: Catalogues,
    private readonly paying: Paying,
    private readonly providers: Providers,
  ) {}

  async execute({ payer, request, body, client }: Speak): Promise<void> {
    const { requestId: id, source } = request;
    const { current: catalogue } = this.catalogues;
    const { priceList } = catalogue;
    const model = soundModel(body.model ?? DEFAULT_SPEAKER, 'speech', catalogue);
    const usage = { character: charactersOf(body.input, model) };
    const spoken = spokenAs(body, model);
    const endpoints = soundEndpoints(model, body.provider);
    const most = mostFor(usage, endpoints);
    const query: Query = { model: model.id, type: 'text_to_speech', source, online: false, free: most === 0n };
    const sale: Sale = { id, query, model, endpoints, priceList, atLeast: most, atMost: most };
    const speak = async (purchase: Purchase) => {
      const { hold, signal } = purchase;
      const { input } = body;
      const call: UpstreamCall<Speech> = {
        make: (endpoint) => {
          const { voice, ...said } = spoken;
          const parameters = known<string | number>(endpoint, said);
          const speech = this.providers.of(hold, endpoint.upstream, 'speech');
          return speech({ model: endpoint.model, input, voice, parameters, signal });
        },
        counted: async () => usage,
        lost: () => ({ usage }),
      };
      const { answer } = await purchase.ask(call);
      const { characters, vendorId } = answer;
      purchase.billMade({
        usage: { character: characters ?? usage.character },
        estimated: characters === undefined,
        ...(vendorId === undefined ? {} : { vendorId }),
      });
      return relayed(answer, purchase, client);
    };
    await this.paying.stream(payer, sale, speak, client);
  }
}

/** @throws UnservableRequest when there is nothing to say, or too much */
function charactersOf(input: string, { id, maxCharacters = 0 }: MediaModel): number {
  const characters = [...input].length;
  if (input.trim() === '') throw new UnservableRequest(400, 'input must be a text with something in it', 'input');
  if (characters <= maxCharacters) return characters;
  const message = `input must have at most ${maxCharacters} characters for the model "${id}"; it has ${characters}`;
  throw new UnservableRequest(400, message, 'input');
}

/** @throws UnservableRequest */
function spokenAs({ voice, language, response_format, speed, instructions }: SpeechBody, model: MediaModel) {
  const name = typeof voice === 'object' && voice !== null ? voice.id : voice;
  // Clients send what they were given nothing for as an empty text.
  const { id } = voiceFor(model, { voice: name || undefined, language: language || undefined });
  return {
    voice: id,
    language: language ? primary(language) : undefined,
    response_format: response_format ?? undefined,
    speed: speed ?? undefined,
    instructions: instructions ?? undefined,
  };
}
