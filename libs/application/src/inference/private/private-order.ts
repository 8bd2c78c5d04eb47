/** Which enclave a private chat is for, and what it may cost. */
import { type Catalogue, type Endpoint, isPrivate, type TokenPricedModel } from '#catalogue';
import { money } from '#kernel';
import type { Order } from '../../billing/order.ts';
import type { Payer } from '../../billing/payer.ts';
import { InvalidRequestError } from '../../errors.ts';
import { calculateMaxCallPrice, EXTENSIBLE_HOLD_DIVISOR } from '../chat/chat-quote.ts';
import type { OutputLengthStats } from '../chat-execution/output-length-stats.ts';
import type { EnclaveOverhead } from './ciphertext-usage.ts';

/** The body of a request for a stream is taken to be this long where it is not said, until it is longer. */
const INITIAL_INPUT_BYTES = 16 * 1024;
/** No answer has more text. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
/** What a usual token of an answer takes up. */
const TYPICAL_BYTES_PER_TOKEN = 4;

export interface PrivateOrder {
  readonly endpoint: Endpoint;
  /** The answer is held for while it is made, and not before it is asked for. */
  readonly isMetered: boolean;
  readonly overhead: EnclaveOverhead;
  readonly billingOrder: Order;
}

interface QuotePrivateChatParams {
  readonly requestId: string;
  readonly source: string;
  readonly model: string;
  readonly contentLength: number | undefined;
  /** The answer can be metered while it is made, and stopped. */
  readonly isMetered: boolean;
}

/** @throws InvalidRequestError when there is no such private model, or it cannot be had here */
export function quotePrivateChat(
  { requestId: id, source, model: name, contentLength: length, isMetered }: QuotePrivateChatParams,
  payer: Payer,
  catalogue: Catalogue,
  lengths: OutputLengthStats,
): PrivateOrder {
  const { model, endpoint } = resolvePrivateModel(name, catalogue);
  const { context, maxOutput } = model;
  const { tariff, eventBytes = 0, eventTokens, templateTokens = 0 } = endpoint;
  const toInputTokens = (bytes: number) => Math.min(bytes + templateTokens, context);
  const maxPrice = calculateMaxCallPrice(context, MAX_RESPONSE_BYTES, tariff);
  // What comes in one piece has been made before anything of it is seen: the longest that it can be is held for.
  const output = isMetered
    ? lengths.getInitialTokens(model.id, payer.id) * (eventTokens ?? TYPICAL_BYTES_PER_TOKEN)
    : maxOutput;
  const bytes = length ?? (isMetered ? INITIAL_INPUT_BYTES : context);
  const initialPrice = money.min(calculateMaxCallPrice(toInputTokens(bytes), output, tariff), maxPrice);
  const query = { model: model.id, type: 'chat_completion', source, online: false, free: maxPrice === 0n } as const;
  const billingOrder: Order = {
    id,
    query,
    model,
    endpoints: [endpoint],
    priceList: catalogue.priceList,
    minPrice: isMetered ? calculateMaxCallPrice(toInputTokens(length ?? 0), 1, tariff) : initialPrice,
    maxPrice,
    partialHold: { minAmount: initialPrice, divisor: EXTENSIBLE_HOLD_DIVISOR },
  };
  return { endpoint, isMetered, overhead: { eventBytes, eventTokens, templateTokens, context }, billingOrder };
}

/**
 * A private model and its enclave, of which there is one: what is encrypted for another does not open there.
 * @throws InvalidRequestError 404
 */
export function resolvePrivateModel(
  name: string,
  catalogue: Catalogue,
): { readonly model: TokenPricedModel; readonly endpoint: Endpoint } {
  const model = catalogue.findModel(name);
  const endpoint = model?.endpoints[0];
  if (model?.type !== 'chat' || !isPrivate(model) || !endpoint)
    throw new InvalidRequestError(404, `The private model "${name}" does not exist`, 'model');
  return { model, endpoint };
}
