/** Charges for generated histories. */
import { type Charge, toCharge } from '#domain';

/** Creates a charge with this price. Some other fields vary with `output`. */
export function createTestCharge(model: string, price: bigint, output: number): Charge {
  const amounts = { price: price.toString(), cost: ((price * 9n) / 10n).toString() };
  const sold = { of: model, provider: 'openai', creditor: 'router', vendorId: `gen-${output}` };
  const usage = { input: 3, cacheRead: 2, cacheWrite: 1, output, reasoning: 1, request: 1 };
  const failure = output % 3 === 0 ? { errorCode: 'timeout' } : {};
  return toCharge([{ ...sold, usage, estimated: output % 2 === 0, ...amounts }], {
    priceList: 'v1',
    attempts: [],
    ...failure,
  });
}
