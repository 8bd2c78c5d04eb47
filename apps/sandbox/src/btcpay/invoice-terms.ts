/**
 * Parses and validates a new invoice in the format of the Greenfield API. The sandbox requires exactly one payment
 * method.
 */
import { money } from '#kernel';
import { getNetwork } from '../chains/network.ts';
import { createError, invalidFieldError } from './greenfield-errors.ts';
import { type BtcPayInvoiceTerms, SPEED_POLICIES } from './invoices.ts';

/** Lightning amounts are in thousandths of the chain's unit. */
const LIGHTNING_DECIMALS = 11;
const DEFAULT_EXPIRY_MINUTES = 15;
const DEFAULT_MONITORING_MINUTES = 1_440;
const MIN_EXPIRY_SECONDS = 30;

type Body = Readonly<Record<string, unknown>>;

/** @throws HttpError 400 or 422 if the terms are invalid or not supported by the sandbox */
export function parseTerms({ amount, currency, metadata = {}, checkout = {} }: Body): BtcPayInvoiceTerms {
  const {
    paymentMethods,
    speedPolicy = 'MediumSpeed',
    paymentTolerance = 0,
    ...times
  } = parseObjectField('Checkout', checkout);
  const { coin, kind } = parsePaymentMethod(paymentMethods);
  if (currency !== coin) {
    throw createError(400, 'generic-error', 'Error retrieving a matching payment method or rate.');
  }
  const tolerance = Number(paymentTolerance);
  if (!(tolerance >= 0 && tolerance <= 100))
    throw invalidFieldError('checkout.paymentTolerance', 'PaymentTolerance can only be between 0 and 100 percent');
  if (typeof speedPolicy !== 'string' || !Object.hasOwn(SPEED_POLICIES, speedPolicy))
    throw invalidFieldError('checkout.speedPolicy', `Error converting value "${speedPolicy}" to type SpeedPolicy`);
  const { decimals } = getNetwork(coin);
  const chainUnits = parseAmount(amount, decimals);
  return {
    coin,
    kind,
    units: kind === 'LN' ? chainUnits * 10n ** BigInt(LIGHTNING_DECIMALS - decimals) : chainUnits,
    decimals: kind === 'LN' ? LIGHTNING_DECIMALS : decimals,
    speedPolicy,
    paymentTolerance: tolerance,
    ...parseTimes(times),
    metadata: parseObjectField('Metadata', metadata),
  };
}

function parsePaymentMethod(value: unknown): { readonly coin: string; readonly kind: 'CHAIN' | 'LN' } {
  if (!Array.isArray(value) || value.length !== 1)
    throw createError(400, 'generic-error', 'the sandbox supports exactly one payment method per invoice');
  const [, coin = '', kind] = /^([A-Z][A-Z0-9]{1,9})-(CHAIN|LN)$/.exec(String(value[0])) ?? [];
  if (coin === '' || (kind === 'LN' && coin !== 'BTC'))
    throw invalidFieldError('checkout.paymentMethods[0]', 'Invalid PaymentMethodId');
  return { coin, kind: kind as 'CHAIN' | 'LN' };
}

/** Drops decimals beyond those of the coin. BTCPay rounds them instead. */
function parseAmount(value: unknown, decimals: number): bigint {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^\d{1,12}(\.\d{1,18})?$/.test(text))
    throw invalidFieldError('amount', 'The amount should be 0 or more.');
  const [integer = '', fraction = ''] = text.split('.');
  return money.parseScaled(`${integer}.${fraction.slice(0, decimals).padEnd(1, '0')}`, decimals);
}

function parseTimes({ expirationMinutes, monitoringMinutes }: Body) {
  const parseMinutes = (value: unknown, byDefault: number) => (value == null ? byDefault : Number(value));
  const expirySeconds = parseMinutes(expirationMinutes, DEFAULT_EXPIRY_MINUTES) * 60;
  if (!(expirySeconds >= MIN_EXPIRY_SECONDS))
    throw invalidFieldError('checkout.expiration', 'Expiration time must be at least 30 seconds');
  return { expirySeconds, monitoringSeconds: parseMinutes(monitoringMinutes, DEFAULT_MONITORING_MINUTES) * 60 };
}

function parseObjectField(path: string, value: unknown): Body {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Body;
  throw invalidFieldError(path, 'must be an object');
}
