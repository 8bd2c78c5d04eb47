/**
 * Charges of version 1 had token counts in five classes for all calls together, and a fee for each search. They become
 * one item for the calls of the model and one item for each fee, which result in the same postings.
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

/** The price of an additional service. Only searches were ever sold in this form. */
export interface FeeV1 {
  readonly name: string;
  readonly provider: string;
  readonly price: Amount;
  readonly cost: Amount;
}

interface ChargeV1 {
  /** The sum over the model and all fees. */
  readonly price: Amount;
  readonly cost: Amount;
  readonly provider: string;
  readonly priceList: string;
  readonly fees?: readonly FeeV1[];
  /** The sum over all calls. */
  readonly usage: Readonly<Record<'input' | 'cacheRead' | 'cacheWrite' | 'output' | 'reasoning', number>>;
  /** Number of calls of the model; 1 if missing. */
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

/** Absorbed charges of version 1 did not name the model. */
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

/** Returns no item if the model was not called, because only a search was made. */
function toModelItems(charge: ChargeV1, of: string | null): readonly ChargeItem[] {
  const { provider, usage, calls = 1, estimated, fees = [] } = charge;
  if (calls === 0) return [];
  const calculateModelPart = (amount: 'cost' | 'price') =>
    fees.reduce((remaining, fee) => remaining - BigInt(fee[amount]), BigInt(charge[amount])).toString();
  const countedUsage: Usage = toUsageJson({ ...usage, request: calls });
  return [
    {
      of,
      provider,
      creditor: provider,
      usage: countedUsage,
      estimated,
      cost: calculateModelPart('cost'),
      price: calculateModelPart('price'),
    },
  ];
}

function toFeeItem({ name, provider, cost, price }: FeeV1): ChargeItem {
  return { of: name, provider, creditor: provider, beside: true, usage: { search: 1 }, estimated: false, cost, price };
}

function upcastAttemptsV1(attempts: readonly AttemptV1[], model: string | null): readonly Attempt[] {
  return attempts.map(({ provider, ...rest }) => ({ provider, creditor: provider, model, ...rest }));
}
