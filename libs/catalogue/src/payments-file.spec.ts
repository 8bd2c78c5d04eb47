import { describe, expect, test } from '@jest/globals';
import { readPayments } from '#catalogue';
import { parsePaymentTerms } from './payments-file.ts';
import { DataFileError } from './validation.ts';

const { coins, methods } = readPayments();
const [coin, ...otherCoins] = coins;
const [method, ...otherMethods] = methods;

/** Returns the mistakes of a file with changes of its first coin and its first method. */
function findMistakes(coinChange: object, methodChange: object = {}): readonly string[] {
  try {
    parsePaymentTerms({
      coins: [{ ...coin, ...coinChange }, ...otherCoins],
      methods: [{ ...method, ...methodChange }, ...otherMethods],
    });
    return [];
  } catch (error) {
    if (error instanceof DataFileError)
      return error.mistakes.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw error;
  }
}

describe('a file of payments', () => {
  test('is accepted with fields of other names at its root, such as $schema', () => {
    expect(parsePaymentTerms({ $schema: './payments.schema.json', coins, methods })).toMatchObject({ coins, methods });
  });

  test('is rejected with all mistakes of its coins and methods', () => {
    expect(
      findMistakes({ rates: { kraken: ['XBTUSD', ''] }, fee: 1 }, { bonus: { percent: 101, description: 'x' } }),
    ).toEqual([
      'coins.0.rates.kraken.1: rates.kraken[1] of coin "BTC" must be a non-empty string',
      'coins.0.fee: coin "BTC" has an unknown field "fee"',
      'methods.0.bonus.percent: bonus.percent of method "btc-lightning" must be an integer from 0 to 100',
    ]);
  });

  test('is rejected with all mistakes that concern several fields', () => {
    expect(
      findMistakes({ fixedRate: '1' }, { currencies: ['USD', 'XMR'], limits: { USD: { min: '5', max: '1' } } }),
    ).toEqual([
      'coins.0: coin "BTC" must have exactly one of rates, ratedAs and fixedRate',
      'methods.0.currencies.1: currencies[1] of method "btc-lightning" names "XMR", which is not a currency of BTC',
      expect.stringMatching(/^methods\.0\.limits\.USD: limits\.USD of method "btc-lightning" must have a min above 0 /),
    ]);
  });

  test('is rejected with a name that occurs twice, at the second one', () => {
    expect(findMistakes({}, { method: methods[1]?.method })).toEqual([
      `methods.1.method: "${methods[1]?.method}" is defined twice`,
    ]);
  });

  test('is rejected without the list of methods', () => {
    expect(() => parsePaymentTerms({ coins })).toThrow('methods of the file of payments must be a list');
    expect(() => parsePaymentTerms(null)).toThrow('the file of payments must be an object');
  });
});
