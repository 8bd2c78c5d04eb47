/**
 * Validates the data file of coins and payment methods. Adding a coin or a method that a payment backend already
 * supports requires no code.
 */
import type { CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import { money } from '#kernel';
import {
  amount,
  anyObject,
  count,
  createDataFileError,
  DataFileError,
  enumRule,
  type FieldLocation,
  findDuplicate,
  flag,
  isText,
  listRule,
  mapRule,
  objectRule,
  optionalRule,
  predicateRule,
  text,
  texts,
  toFieldLocation,
  type ValidationRule,
  withParent,
} from './validation-rules.ts';

const MAX_DECIMALS = 18;
/** One week. A later expiry would be risky, because a locked exchange rate is a free option for the customer. */
const MAX_EXPIRY_MINUTES = 10_080;
const MAX_BONUS_PERCENT = 100;
/** Protects against typing errors: BTCPay waits for six at most, and 1,000 blocks of Bitcoin take a week. */
const MAX_CONFIRMATIONS = 1_000;

const rangeRule = (min: number, max: number): ValidationRule =>
  predicateRule(
    `an integer from ${min} to ${max}`,
    (it) => Number.isSafeInteger(it) && Number(it) >= min && Number(it) <= max,
  );
const slug = predicateRule(
  'lower case letters, digits and hyphens',
  (it) => typeof it === 'string' && /^[a-z0-9-]+$/.test(it),
);
const code = predicateRule(
  'upper case letters and digits, starting with a letter',
  (it) => typeof it === 'string' && /^[A-Z][A-Z0-9]*$/.test(it),
);
const namePair = predicateRule('two names', (it) => Array.isArray(it) && it.length === 2 && it.every(isText));
const decimals = rangeRule(0, MAX_DECIMALS);

const coinFields = objectRule({
  code,
  name: text,
  decimals,
  step: count,
  currencies: mapRule(decimals),
  unit: optionalRule(objectRule({ name: text, decimals })),
  ratedAs: optionalRule(code),
  fixedRate: optionalRule(amount),
  rates: optionalRule(
    objectRule({ kraken: optionalRule(namePair), coinbase: optionalRule(text), coingecko: optionalRule(text) }),
  ),
  link: optionalRule(objectRule({ scheme: text, amount: text, parameters: optionalRule(mapRule(text)) })),
});

const methodFields = objectRule({
  method: slug,
  displayName: text,
  coin: code,
  destination: enumRule(['bolt11', 'address', 'page']),
  backends: listRule(slug),
  currencies: texts,
  limits: mapRule(objectRule({ min: text, max: text })),
  expiryMinutes: rangeRule(1, MAX_EXPIRY_MINUTES),
  bonus: (value, location) => {
    if (value !== null) objectRule({ percent: rangeRule(0, MAX_BONUS_PERCENT), description: text })(value, location);
  },
  confirmations: rangeRule(0, MAX_CONFIRMATIONS),
  listed: flag,
} satisfies Record<keyof PaymentMethod, ValidationRule>);

/** @throws DataFileError with the coin or the method, and the field */
export function parsePaymentTerms(data: unknown): PaymentTerms {
  anyObject(data, toFieldLocation('the file of payments'));
  const { coins, methods } = data as { coins?: readonly CoinTerms[]; methods?: readonly PaymentMethod[] };
  for (const [name, list] of Object.entries({ coins, methods }))
    if (!Array.isArray(list)) throw new DataFileError(`${name} must be a list`, [name]);
  const terms = data as PaymentTerms;
  for (const [i, coin] of terms.coins.entries())
    assertCoin(coin, toFieldLocation(`coin "${coin?.code}"`, 'coins', i), terms);
  for (const [i, method] of terms.methods.entries())
    assertMethod(method, toFieldLocation(`method "${method?.method}"`, 'methods', i), terms);
  const twice = findDuplicate([
    ...terms.coins.map((coin) => coin.code),
    ...terms.methods.map((method) => method.method),
  ]);
  if (twice) throw new DataFileError(`"${twice[0]}" is defined twice`, []);
  return terms;
}

function assertCoin(coin: CoinTerms, location: FieldLocation, { coins }: PaymentTerms): void {
  coinFields(coin, location);
  const rateOrigins = [coin.ratedAs, coin.fixedRate, coin.rates].filter((way) => way !== undefined);
  if (rateOrigins.length !== 1)
    throw createDataFileError(location, 'must have exactly one of rates, ratedAs and fixedRate');
  if (coin.ratedAs !== undefined && !coins.some((other) => other.code === coin.ratedAs && other.rates))
    throw createDataFileError(withParent(location, 'ratedAs'), `names "${coin.ratedAs}", which has no rates`);
}

function assertMethod(method: PaymentMethod, location: FieldLocation, { coins }: PaymentTerms): void {
  methodFields(method, location);
  const coin = coins.find((candidate) => candidate.code === method.coin);
  if (!coin) throw createDataFileError(withParent(location, 'coin'), `names "${method.coin}", which does not exist`);
  const { currencies, limits } = method;
  for (const [i, currency] of currencies.entries()) {
    const currencyLocation = withParent(location, 'currencies', i);
    if (currency !== 'USD' && !Object.hasOwn(coin.currencies, currency))
      throw createDataFileError(currencyLocation, `names "${currency}", which is not a currency of ${coin.code}`);
    if (!Object.hasOwn(limits, currency) && !limits.USD)
      throw createDataFileError(currencyLocation, `names "${currency}", which requires limits, or limits of USD`);
  }
  for (const [currency, range] of Object.entries(limits)) {
    const rangeLocation = withParent(location, 'limits', currency);
    if (!currencies.includes(currency))
      throw createDataFileError(rangeLocation, 'must be one of the currencies of the method');
    assertRange(range, coin.currencies[currency] ?? MAX_DECIMALS, rangeLocation);
  }
}

function assertRange({ min, max }: { min: string; max: string }, maxDecimals: number, location: FieldLocation): void {
  try {
    const [minUnits, maxUnits] = [money.parseScaled(min, maxDecimals), money.parseScaled(max, maxDecimals)];
    if (minUnits > 0n && maxUnits >= minUnits) return;
  } catch {} // not a decimal
  throw createDataFileError(
    location,
    'must have a min above 0 and a max that is not below it, as decimals with at most as many places as the currency',
  );
}
