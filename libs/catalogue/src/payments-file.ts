/** Coins and payment methods as they stand in a data file. Another one is data alone. */
import type { CoinTerms, PaymentMethod, PaymentTerms } from '#domain';
import { money } from '#kernel';
import {
  amount,
  count,
  createDataFileError,
  DataFileError,
  enumRule,
  type FieldLocation,
  findDuplicate,
  flag,
  isObject,
  isText,
  listRule,
  mapRule,
  object,
  optional,
  predicateRule,
  text,
  toFieldLocation,
  type ValidationRule,
  withParent,
} from './validation-rules.ts';

const MAX_DECIMALS = 18;
/** A week: an invoice at a locked rate is a free option. */
const MAX_EXPIRY_MINUTES = 10_080;
const MAX_BONUS_PERCENT = 100;
/** No back end can tell more. */
const MAX_CONFIRMATIONS = 1_000;

const from = (least: number, most: number): ValidationRule =>
  predicateRule(
    `a whole number from ${least} to ${most}`,
    (it) => Number.isSafeInteger(it) && Number(it) >= least && Number(it) <= most,
  );
const word = predicateRule(
  'lower case letters, digits and hyphens',
  (it) => typeof it === 'string' && /^[a-z0-9-]+$/.test(it),
);
const code = predicateRule(
  'upper case letters and digits',
  (it) => typeof it === 'string' && /^[A-Z][A-Z0-9]*$/.test(it),
);
const pair = predicateRule('two names', (it) => Array.isArray(it) && it.length === 2 && it.every(isText));
const decimals = from(0, MAX_DECIMALS);

const coinFields = object({
  code,
  name: text,
  decimals,
  step: count,
  currencies: mapRule(decimals),
  unit: optional(object({ name: text, decimals })),
  ratedAs: optional(code),
  fixedRate: optional(amount),
  rates: optional(object({ kraken: optional(pair), coinbase: optional(text), coingecko: optional(text) })),
  link: optional(object({ scheme: text, amount: text, parameters: optional(mapRule(text)) })),
});

const methodFields = object({
  method: word,
  displayName: text,
  coin: code,
  destination: enumRule(['bolt11', 'address', 'page']),
  backends: listRule(word),
  limits: mapRule(object({ min: text, max: text })),
  expiryMinutes: from(1, MAX_EXPIRY_MINUTES),
  bonus: (value, place) => {
    if (value !== null) object({ percent: from(0, MAX_BONUS_PERCENT), description: text })(value, place);
  },
  confirmations: from(0, MAX_CONFIRMATIONS),
  listed: flag,
} satisfies Record<keyof PaymentMethod, ValidationRule>);

/** @throws DataFileError that names the coin or the method, and the field */
export function paymentsIn(data: unknown): PaymentTerms {
  isObject(data, toFieldLocation('the file of payments'));
  const { coins, methods } = data as { coins?: readonly CoinTerms[]; methods?: readonly PaymentMethod[] };
  for (const [name, list] of Object.entries({ coins, methods }))
    if (!Array.isArray(list)) throw new DataFileError(`${name} must be a list`, [name]);
  const terms = data as PaymentTerms;
  for (const [i, coin] of terms.coins.entries())
    assertCoin(coin, toFieldLocation(`coin "${coin?.code}"`, 'coins', i), terms);
  for (const [i, method] of terms.methods.entries())
    assertMethod(method, toFieldLocation(`method "${method?.method}"`, 'methods', i), terms);
  const twice = findDuplicate([...terms.coins.map((each) => each.code), ...terms.methods.map((each) => each.method)]);
  if (twice) throw new DataFileError(`"${twice[0]}" is there twice`, []);
  return terms;
}

function assertCoin(coin: CoinTerms, place: FieldLocation, { coins }: PaymentTerms): void {
  coinFields(coin, place);
  const ways = [coin.ratedAs, coin.fixedRate, coin.rates].filter((way) => way !== undefined);
  if (ways.length !== 1) throw createDataFileError(place, 'must have one of rates, ratedAs and fixedRate');
  if (coin.ratedAs !== undefined && !coins.some((each) => each.code === coin.ratedAs && each.rates))
    throw createDataFileError(withParent(place, 'ratedAs'), `names "${coin.ratedAs}", which has no rates`);
}

function assertMethod(method: PaymentMethod, place: FieldLocation, { coins }: PaymentTerms): void {
  methodFields(method, place);
  const coin = coins.find((each) => each.code === method.coin);
  if (!coin) throw createDataFileError(withParent(place, 'coin'), `names "${method.coin}", which is not there`);
  for (const [currency, limits] of Object.entries(method.limits)) {
    const own = Object.hasOwn(coin.currencies, currency) ? coin.currencies[currency] : undefined;
    if (own === undefined && currency !== 'USD')
      throw createDataFileError(withParent(place, 'limits', currency), `is of no currency of ${coin.code}`);
    assertRange(limits, own ?? MAX_DECIMALS, withParent(place, 'limits', currency));
  }
}

function assertRange({ min, max }: { min: string; max: string }, decimalsOf: number, place: FieldLocation): void {
  try {
    const [least, most] = [money.parseScaled(min, decimalsOf), money.parseScaled(max, decimalsOf)];
    if (least > 0n && most >= least) return;
  } catch {} // it is no decimal
  throw createDataFileError(place, 'must go from an amount above 0 to one that is not below it');
}
