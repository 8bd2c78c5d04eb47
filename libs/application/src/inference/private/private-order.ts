/** Resolves the enclave of a private chat, and quotes the chat. */
import { type Catalogue, type Endpoint, isPrivate, type TokenPricedModel } from '#catalogue';
import type { PartialHold } from '#domain';
import { money } from '#kernel';
import { MAX_UNCOVERED_MS } from '../../billing/extend-until-covered.ts';
import type { Order } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import type { CatalogueService } from '../../catalogue-service.ts';
import { InvalidRequestError } from '../../errors.ts';
import type { EndpointHealth } from '../../routing/endpoint-health.ts';
import { assertModelOffered } from '../../routing/preferences.ts';
import { calculateMaxCallPrice, calculateStopPrice, EXTENSIBLE_HOLD_DIVISOR } from '../chat/chat-quote.ts';
import type { OutputLengthStats } from '../chat-execution/output-length-stats.ts';
import type { EnclaveOverhead } from './ciphertext-usage.ts';

/** Assumed length of a metered request body whose length is unknown, until more bytes arrive. */
export const INITIAL_INPUT_BYTES = 16 * 1024;
/** Maximum bytes of text in a response. The maximum price assumes one token per byte. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const TYPICAL_BYTES_PER_TOKEN = 4;

export interface PrivateOrder {
  readonly model: TokenPricedModel;
  readonly endpoint: Endpoint;
  /** The hold is extended during the response. Otherwise money for the longest output is held before the call. */
  readonly isMetered: boolean;
  readonly overhead: EnclaveOverhead;
  readonly billingOrder: Order;
}

interface QuotePrivateChatParams {
  readonly requestId: string;
  readonly source: string;
  readonly model: string;
  readonly contentLength: number | undefined;
  /** Whether the response is streamed, so that it can be metered while it is generated. */
  readonly stream: boolean;
}

export class PrivateChatQuoter {
  constructor(
    private readonly catalogues: CatalogueService,
    private readonly lengths: OutputLengthStats,
    private readonly health: EndpointHealth,
  ) {}

  /** @throws InvalidRequestError (404) if the private model does not exist or is not available here */
  async quote(
    { requestId: id, source, model: name, contentLength: length, stream }: QuotePrivateChatParams,
    payer: Payer,
  ): Promise<PrivateOrder> {
    const { lengths, health } = this;
    const catalogue = await this.catalogues.loadForPayer(payer);
    const { model, endpoint } = resolvePrivateModel(name, catalogue);
    const { context, maxOutput } = model;
    const { tariff, eventBytes = 0, eventTokens, templateTokens = 0 } = endpoint;
    const isMetered = stream && endpoint.onDisconnect === 'stops';
    const toInputTokens = (bytes: number) => Math.min(bytes + templateTokens, context);
    const maxPrice = calculateMaxCallPrice(context, MAX_RESPONSE_BYTES, tariff);
    const countedPerToken = eventTokens ?? TYPICAL_BYTES_PER_TOKEN;
    const bytes = length ?? (isMetered ? INITIAL_INPUT_BYTES : context);
    const calculateLimited = (output: number, inputBytes = bytes) =>
      money.min(calculateMaxCallPrice(toInputTokens(inputBytes), output, tariff), maxPrice);
    const limitPrice = calculateLimited(maxOutput, length ?? context);
    const createPartialHold = (): PartialHold => {
      // A non-streaming response is generated before its first byte arrives, so money for its maximum length is held.
      if (!isMetered) return { minAmount: limitPrice, divisor: EXTENSIBLE_HOLD_DIVISOR };
      const { initial, reserved } = lengths.getLengths(model, payer.id);
      const extension = {
        minLimitPrice: limitPrice,
        fixedLimitPrice: limitPrice,
        longPrice: calculateLimited(reserved * countedPerToken),
        stopPrice: calculateStopPrice({ endpoints: [endpoint], choices: 1 }, MAX_UNCOVERED_MS, (enclave) =>
          health.getMaxTokensPerSecond(model, enclave),
        ),
      };
      return { minAmount: calculateLimited(initial * countedPerToken), divisor: EXTENSIBLE_HOLD_DIVISOR, extension };
    };
    const query = { model: model.id, type: 'chat_completion', source, online: false, free: false } as const;
    const billingOrder: Order = {
      id,
      query,
      model,
      endpoints: [endpoint],
      priceList: catalogue.priceList,
      minPrice: isMetered ? calculateMaxCallPrice(toInputTokens(length ?? 0), 1, tariff) : limitPrice,
      maxPrice,
      partialHold: createPartialHold(),
      updatePartialHold: createPartialHold,
    };
    return { model, endpoint, isMetered, overhead: { eventBytes, eventTokens, templateTokens, context }, billingOrder };
  }
}

/**
 * Finds a private model and its only enclave. There is no fallback, because only the enclave whose key encrypted a
 * request can decrypt it.
 * @throws InvalidRequestError (404) if the model does not exist or is not available here
 */
export function resolvePrivateModel(
  name: string,
  catalogue: Catalogue,
): { readonly model: TokenPricedModel; readonly endpoint: Endpoint } {
  const model = catalogue.findModel(name);
  if (model !== undefined) assertModelOffered(model, catalogue);
  const endpoint = model?.endpoints[0];
  if (model?.type !== 'chat' || !isPrivate(model) || !endpoint)
    throw new InvalidRequestError(404, `The private model "${name}" does not exist`, 'model');
  return { model, endpoint };
}
