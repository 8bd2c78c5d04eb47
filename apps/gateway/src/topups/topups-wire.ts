import { type ListedMethod, TOPUP_ID_LENGTH } from '#application';
import type { CoinTerms, Destination } from '#domain';
import { money, toJsonNumber } from '#kernel';
import type { TopupView } from '#projections';
import type { PublicBaseUrl } from '../edge/network/public-base-url.ts';

export const TOPUP_ID = new RegExp(`^[A-Za-z0-9]{${TOPUP_ID_LENGTH}}$`);

export function toCheckoutUrl({ url }: PublicBaseUrl, topupId: string): string {
  return `${url}/topup/checkout/${topupId}`;
}

/** Returns the amount exactly as it was requested; times are integers in Unix seconds. */
export function toInvoiceHeader({
  topupId,
  requested,
  createdAt,
  expiresAt,
}: Pick<TopupView, 'topupId' | 'requested' | 'createdAt' | 'expiresAt'>) {
  return {
    invoice_id: topupId,
    amount: toJsonNumber(money.formatScaled(money.parseScaled(requested.amount, 18), 18)),
    currency: requested.currency,
    created_at: toUnixSeconds(createdAt),
    expires_at: toUnixSeconds(expiresAt),
  };
}

/** Returns the destination in the field that clients expect for its kind. */
export function toDestinationFields({ kind, value }: Destination) {
  switch (kind) {
    case 'bolt11':
      return { lightning_invoice: value };
    case 'address':
      return { address: value };
    case 'page':
      return { payment_page: value };
    default:
      return kind satisfies never;
  }
}

/** Returns the destination in the fields of `toDestinationFields`, and in a form for wallets if there is one. */
export function toPaymentFields(destination: Destination, coin: CoinTerms, due: string) {
  const { kind, value } = destination;
  const destinationFields = toDestinationFields(destination);
  if (kind === 'bolt11') return { ...destinationFields, payment_request: value };
  const uri = kind === 'address' ? toPaymentUri(value, coin, due) : undefined;
  return uri === undefined ? destinationFields : { ...destinationFields, payment_uri: uri };
}

/**
 * Returns a payment link for wallets; undefined for a coin without such links.
 * @param due the amount in the main unit of the coin, such as bitcoins
 */
export function toPaymentUri(address: string, { link }: CoinTerms, due: string): string | undefined {
  return link && `${link.scheme}:${address}?${new URLSearchParams({ [link.amount]: due, ...link.parameters })}`;
}

function toUnixSeconds(instant: string): number {
  return Math.floor(Date.parse(instant) / 1000);
}

export function toPaymentMethodJson({ terms, limits }: ListedMethod) {
  const { method, displayName, currencies, expiryMinutes, bonus } = terms;
  const numbers = Object.entries(limits).map(([currency, { min, max }]) => [
    currency,
    { min: toJsonNumber(min), max: toJsonNumber(max) },
  ]);
  return {
    method,
    display_name: displayName,
    supported_currencies: currencies,
    limits: Object.fromEntries(numbers),
    expiration_minutes: expiryMinutes,
    bonus: bonus?.description ?? null,
    min_usd: toJsonNumber(limits.USD?.min ?? '0'),
    max_usd: toJsonNumber(limits.USD?.max ?? '0'),
    currencies,
  };
}
