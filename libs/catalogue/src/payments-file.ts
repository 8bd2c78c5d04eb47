/**
 * Validates the data file of coins and payment methods. Adding a coin or a method that a payment backend already
 * supports requires no code.
 */
import { z } from 'zod';
import type { CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import { money } from '#kernel';
import {
  amount,
  count,
  flag,
  integerSchema,
  listSchema,
  mapSchema,
  patternSchema,
  text,
  texts,
} from './field-schemas.ts';
import { addCheck, findDuplicates, getFields, type JsonPath, type ReportProblem, validate } from './validation.ts';

const MAX_DECIMALS = 18;
/** One week. A later expiry would be risky, because a locked exchange rate is a free option for the customer. */
const MAX_EXPIRY_MINUTES = 10_080;
const MAX_BONUS_PERCENT = 100;
/** Protects against typing errors: BTCPay waits for six at most, and 1,000 blocks of Bitcoin take a week. */
const MAX_CONFIRMATIONS = 1_000;

const rangeSchema = (min: number, max: number) => integerSchema(`an integer from ${min} to ${max}`, min, max);
const slug = patternSchema('lower case letters, digits and hyphens', /^[a-z0-9-]+$/);
const code = patternSchema('upper case letters and digits, starting with a letter', /^[A-Z][A-Z0-9]*$/);
const decimals = rangeSchema(0, MAX_DECIMALS);

const coin = z.strictObject({
  code,
  name: text,
  decimals,
  step: count,
  currencies: mapSchema(decimals),
  unit: z.strictObject({ name: text, decimals }).optional(),
  ratedAs: code.optional(),
  fixedRate: amount.optional(),
  rates: z
    .strictObject({
      kraken: z.tuple([text, text], 'must be two names').optional(),
      coinbase: text.optional(),
      coingecko: text.optional(),
    })
    .optional(),
  link: z.strictObject({ scheme: text, amount: text, parameters: mapSchema(text).optional() }).optional(),
}) satisfies z.ZodType<CoinTerms>;

const paymentMethod = z.strictObject({
  method: slug,
  displayName: text,
  coin: code,
  destination: z.enum(['bolt11', 'address', 'page']),
  backends: listSchema(slug),
  currencies: texts,
  limits: mapSchema(z.strictObject({ min: text, max: text })),
  expiryMinutes: rangeSchema(1, MAX_EXPIRY_MINUTES),
  bonus: z.strictObject({ percent: rangeSchema(0, MAX_BONUS_PERCENT), description: text }).nullable(),
  confirmations: rangeSchema(0, MAX_CONFIRMATIONS),
  listed: flag,
}) satisfies z.ZodType<PaymentMethod>;

/** The file may have other fields next to the lists, such as `$schema`. */
export const payments = addCheck(
  z.looseObject({ coins: z.array(coin, 'must be a list'), methods: z.array(paymentMethod, 'must be a list') }),
  ({ coins, methods }, report) => {
    for (const [i, entry] of coins.entries())
      checkCoin(entry, coins, (problem, ...path) => report(problem, 'coins', i, ...path));
    for (const [i, entry] of methods.entries())
      checkMethod(entry, coins, (problem, ...path) => report(problem, 'methods', i, ...path));
  },
);

/** @throws DataFileError with the coin or the method, and the field */
export function parsePaymentTerms(data: unknown): PaymentTerms {
  const { coins, methods } = (data ?? {}) as { readonly coins?: unknown; readonly methods?: unknown };
  const codes = getFields(coins, 'code');
  const duplicates = findDuplicates([...codes, ...getFields(methods, 'method')]).map(([name, i]) => ({
    message: `"${name}" is defined twice`,
    path: i < codes.length ? ['coins', i, 'code'] : ['methods', i - codes.length, 'method'],
  }));
  const findOwner = ([list, i]: JsonPath) => {
    if (typeof i !== 'number') return { owner: 'the file of payments', depth: 0 };
    const owner = list === 'coins' ? `coin "${codes[i]}"` : `method "${getFields(methods, 'method')[i]}"`;
    return { owner, depth: 2 };
  };
  return validate(payments, data, findOwner, duplicates);
}

function checkCoin({ ratedAs, fixedRate, rates }: CoinTerms, coins: readonly CoinTerms[], report: ReportProblem): void {
  const rateOrigins = [ratedAs, fixedRate, rates].filter((way) => way !== undefined);
  if (rateOrigins.length !== 1) report('must have exactly one of rates, ratedAs and fixedRate');
  if (ratedAs !== undefined && !coins.some((other) => other.code === ratedAs && other.rates))
    report(`names "${ratedAs}", which has no rates`, 'ratedAs');
}

function checkMethod(method: PaymentMethod, coins: readonly CoinTerms[], report: ReportProblem): void {
  const coin = coins.find((candidate) => candidate.code === method.coin);
  if (coin) checkCurrencies(method, coin, report);
  else report(`names "${method.coin}", which does not exist`, 'coin');
}

function checkCurrencies({ currencies, limits }: PaymentMethod, coin: CoinTerms, report: ReportProblem): void {
  for (const [i, currency] of currencies.entries()) {
    if (currency !== 'USD' && !Object.hasOwn(coin.currencies, currency))
      report(`names "${currency}", which is not a currency of ${coin.code}`, 'currencies', i);
    if (!Object.hasOwn(limits, currency) && !limits.USD)
      report(`names "${currency}", which requires limits, or limits of USD`, 'currencies', i);
  }
  for (const [currency, { min, max }] of Object.entries(limits)) {
    if (!currencies.includes(currency)) report('must be one of the currencies of the method', 'limits', currency);
    if (!isRange(min, max, coin.currencies[currency] ?? MAX_DECIMALS))
      report(
        'must have a min above 0 and a max that is not below it, as decimals with at most as many places as the currency',
        'limits',
        currency,
      );
  }
}

function isRange(min: string, max: string, maxDecimals: number): boolean {
  try {
    const [minUnits, maxUnits] = [money.parseScaled(min, maxDecimals), money.parseScaled(max, maxDecimals)];
    return minUnits > 0n && maxUnits >= minUnits;
  } catch {
    return false; // not a decimal
  }
}
