/** The models that are sold, where they can be had and for how much. */
import { createHash } from 'node:crypto';
import { type Fee, type PublishedRates, type Rates, ratesFrom } from '#domain';
import { money } from '#kernel';
import {
  assertConsistent,
  type EndpointFile,
  type FeeFile,
  type ModelFile,
  marginOf,
  type Quantization,
  slugOf,
} from './model-file.ts';

/** Where a model can be had, and for how much. */
export interface Endpoint extends Omit<EndpointFile, 'usdPerMillionTokens' | 'usdPerRequest' | 'margin'> {
  /** The provider as requests and the books name it: who is owed for it. */
  readonly slug: string;
  readonly rates: Rates;
  /** Request fields that the upstream knows; it may refuse others. */
  readonly parameters: readonly string[];
  readonly zdr: boolean;
  readonly collectsData: boolean;
  readonly quantization: Quantization;
}

export interface Model extends Omit<ModelFile, 'endpoints' | 'released' | 'outputs'> {
  /** Unix seconds. */
  readonly created: number;
  readonly outputs: readonly string[];
  readonly endpoints: readonly Endpoint[];
}

export interface PriceList {
  readonly version: string;
  readonly rates: readonly PublishedRates[];
  readonly fees: readonly Fee[];
}

export type ParameterLists = Readonly<Record<string, readonly string[]>>;

export class Catalogue {
  readonly models: readonly Model[];
  readonly priceList: PriceList;
  private readonly byName: ReadonlyMap<string, Model>;

  /** @throws Error that names the model that is not as it must be */
  constructor(files: readonly ModelFile[], lists: ParameterLists = {}, fees: readonly FeeFile[] = []) {
    assertConsistent(files, lists);
    const rates = files.map((file) => file.endpoints.map((endpoint) => publishedRates(file.id, endpoint)));
    this.models = files.map((file, i) => modelOf(file, rates[i] as PublishedRates[], lists));
    this.byName = new Map(
      this.models.flatMap((model) => [model.id, ...(model.aliases ?? [])].map((name) => [name, model])),
    );
    const published = rates.flat();
    const listed = fees.map(publishedFee);
    this.priceList = { version: versionOf(published, listed), rates: published, fees: listed };
  }

  /** Finds a model by its id or an alias. */
  find(name: string): Model | undefined {
    return this.byName.get(name);
  }

  /** What a service beside the models costs; undefined when it is not sold. */
  feeFor(name: string): Fee | undefined {
    return this.priceList.fees.find((fee) => fee.name === name);
  }
}

function modelOf(
  { endpoints, released, ...model }: ModelFile,
  rates: readonly PublishedRates[],
  lists: ParameterLists,
): Model {
  return {
    ...model,
    created: Date.parse(`${released}T00:00:00Z`) / 1000,
    outputs: model.outputs ?? ['text'],
    endpoints: endpoints.map(({ parameters, usdPerMillionTokens, usdPerRequest, margin, ...endpoint }, i) => ({
      zdr: false,
      collectsData: false,
      quantization: 'unknown',
      ...endpoint,
      slug: slugOf(endpoint.provider),
      rates: ratesFrom(rates[i] as PublishedRates),
      parameters: typeof parameters === 'string' ? (lists[parameters] ?? []) : parameters,
    })),
  };
}

/** Token classes without a price of their own cost what their side costs: cached input as input, reasoning as output. */
function publishedRates(model: string, endpoint: EndpointFile): PublishedRates {
  const { input, output, cacheRead = input, cacheWrite = input, reasoning = output } = endpoint.usdPerMillionTokens;
  const amount = (text: string) => money.toJson(money.usd(text));
  return {
    model,
    provider: slugOf(endpoint.provider),
    input: amount(input),
    cacheRead: amount(cacheRead),
    cacheWrite: amount(cacheWrite),
    output: amount(output),
    reasoning: amount(reasoning),
    request: amount(endpoint.usdPerRequest ?? '0'),
    marginBasisPoints: Number(marginOf(endpoint.margin)),
  };
}

function publishedFee({ name, provider, costUsd, priceUsd }: FeeFile): Fee {
  const amount = (text: string) => money.toJson(money.usd(text));
  return { name, provider: slugOf(provider), price: amount(priceUsd), cost: amount(costUsd) };
}

/** The same prices have the same version, wherever and whenever they are read. */
function versionOf(rates: readonly PublishedRates[], fees: readonly Fee[]): string {
  return createHash('sha256')
    .update(JSON.stringify([rates, fees]))
    .digest('hex')
    .slice(0, 16);
}
