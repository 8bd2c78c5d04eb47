/**
 * Charges of version 1 counted tokens in five classes for all calls together, and had a fee for each search. As items they
 * book the same lines: one item for the model's calls, one for each fee.
 */
import type { Attempt, Charge, ChargeItem } from '../charge.ts';
import type { ChargeAbsorbed, HoldReleased, HoldSettled } from '../events.ts';
import { toUsageJson, type Usage } from '../tariff.ts';
import type { Amount } from '../value-types.ts';

interface AttemptV1 {
  readonly provider: string;
  readonly outcome: string;
  readonly status?: number;
  readonly milliseconds: number;
}

/** A use of a service beside the model; all that were ever sold were searches. */
export interface FeeV1 {
  readonly name: string;
  readonly provider: string;
  readonly price: Amount;
  readonly cost: Amount;
}

interface ChargeV1 {
  /** Of the model and of all fees. */
  readonly price: Amount;
  readonly cost: Amount;
  readonly provider: string;
  readonly priceList: string;
  readonly fees?: readonly FeeV1[];
  /** Of all calls together. */
  readonly usage: Readonly<Record<'input' | 'cacheRead' | 'cacheWrite' | 'output' | 'reasoning', number>>;
  /** 1 where it is left out. */
  readonly calls?: number;
  readonly estimated: boolean;
  readonly attempts: readonly AttemptV1[];
  readonly errorCode?: string;
}

type WithChargeV1<Data> = Omit<Data, 'charge'> & { readonly charge: ChargeV1 };
type WithAttemptsV1<Data> = Omit<Data, 'attempts'> & { readonly attempts: readonly AttemptV1[] };

export function upcastHoldSettledV1(data: WithChargeV1<HoldSettled['data']>): HoldSettled['data'] {
  return { ...data, charge: upcastChargeV1(data.charge, data.query.model) };
}

/** What was absorbed did not say of which model. */
export function upcastChargeAbsorbedV1(data: WithChargeV1<ChargeAbsorbed['data']>): ChargeAbsorbed['data'] {
  return { ...data, charge: upcastChargeV1(data.charge, null) };
}

export function upcastHoldReleasedV1(data: WithAttemptsV1<HoldReleased['data']>): HoldReleased['data'] {
  return { ...data, attempts: upcastAttemptsV1(data.attempts, data.query.model) };
}

function upcastChargeV1(charge: ChargeV1, model: string | null): Charge {
  const { price, cost, priceList, fees = [], attempts, errorCode } = charge;
  return {
    items: [...toModelItems(charge, model), ...fees.map(toFeeItem)],
    cost,
    price,
    priceList,
    attempts: upcastAttemptsV1(attempts, model),
    ...(errorCode === undefined ? {} : { errorCode }),
  };
}

/** Nothing where the model was not called: only a search was made for it. */
function toModelItems(charge: ChargeV1, of: string | null): readonly ChargeItem[] {
  const { provider, usage, calls = 1, estimated, fees = [] } = charge;
  if (calls === 0) return [];
  const calculateModelPart = (amount: 'cost' | 'price') =>
    fees.reduce((remaining, fee) => remaining - BigInt(fee[amount]), BigInt(charge[amount])).toString();
  const countedUsage: Usage = toUsageJson({ ...usage, request: calls });
  const amounts = { cost: calculateModelPart('cost'), price: calculateModelPart('price') };
  return [{ of, provider, creditor: provider, usage: countedUsage, estimated, ...amounts }];
}

function toFeeItem({ name, provider, cost, price }: FeeV1): ChargeItem {
  return { of: name, provider, creditor: provider, beside: true, usage: { search: 1 }, estimated: false, cost, price };
}

function upcastAttemptsV1(attempts: readonly AttemptV1[], model: string | null): readonly Attempt[] {
  return attempts.map(({ provider, ...rest }) => ({ provider, creditor: provider, model, ...rest }));
}
