/** A cluster with copies of models, on which waves run. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createLog, openFoundation, readSettings } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { root, type StartedProcess, startApp } from '../../processes.ts';
import { mean } from './random.ts';
import { repeatFetch } from './repeat-fetch.ts';
import { sendWave, sleep, type Wave } from './wave.ts';

/** The models that waves use in copies, and the number of the copies, which have the same prices and provider. */
const COPIES: Readonly<Record<string, number>> = {
  'anthropic/claude-opus-4.7': 160,
  'openai/gpt-4.1': 24,
};
const MODELS_FILE = 'models.json';
/** The probe of a price: short enough not to be a sample of the model's speed. */
const PROBE_TOKENS = 64;
/** A bonus that is added to each payment. */
const BONUS = 1.05;
const RICH_USD = 150;
/** The account of a key with a limit has this many times the limit. */
const CAPPED_FACTOR = 10;
/** Gateways share what they measured after at most this time. */
const SHARED_WITHIN_MS = 8_000;

export interface WavePayer {
  readonly customer: Customer;
  /** What the payer may spend: the balance, or the limit of the key. */
  readonly fundsUsd: number;
}

interface ModelEntry {
  readonly id: string;
  readonly aliases?: unknown;
}

export class HoldScene {
  private readonly used = new Map<string, number>();
  private readonly measured = new Map<string, Promise<string>>();
  private readonly prices = new Map<string, Promise<number>>();

  private constructor(
    readonly cluster: ProofCluster,
    private readonly foundation: Awaited<ReturnType<typeof openFoundation>>,
    private readonly resources: AsyncDisposableStack,
  ) {}

  static async open(gateways: number): Promise<HoldScene> {
    await using resources = new AsyncDisposableStack();
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-holds-'));
    resources.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
    const data = path.join(directory, 'data');
    const settings = { CATALOGUE_DIR: await copyCatalogue(directory) };
    const cluster = await ProofCluster.start(data, gateways, settings);
    resources.defer(() => cluster.stop());
    const foundation = await openFoundation(readSettings({ DATA_DIR: data }), createLog('warn'));
    resources.defer(() => foundation.close());
    return new HoldScene(cluster, foundation, resources.move());
  }

  get store() {
    return this.foundation.store;
  }

  async close(): Promise<void> {
    await this.resources.disposeAsync();
  }

  /** Returns a copy of the wave's model that nobody has used, or one that is measured as the wave demands. */
  getModel(wave: Wave): Promise<string> {
    if (wave.measured === 'unmeasured') return Promise.resolve(this.takeModel(wave.base));
    const { base, delivery, protocol, measured, directive } = wave;
    const key = JSON.stringify([base, delivery, protocol, measured, directive]);
    return getOrStart(this.measured, key, () => this.measureModel(wave, measured));
  }

  /** Creates an account with `usd` USD. If `isCapped`, the account has more money, but its key may spend only that. */
  createPayer(usd: number, isCapped = false): Promise<WavePayer> {
    return repeatFetch(() => this.tryToCreatePayer(usd, isCapped));
  }

  fetchBalance(customer: Customer) {
    return repeatFetch(() => this.cluster.fetchBalance(customer));
  }

  private async tryToCreatePayer(usd: number, isCapped: boolean): Promise<WavePayer> {
    if (!isCapped) {
      const customer = await this.cluster.createCustomer(Number((usd / BONUS).toFixed(9)));
      return { customer, fundsUsd: (await this.cluster.fetchBalance(customer)).balance };
    }
    const customer = await this.cluster.createCustomer(usd * CAPPED_FACTOR);
    const fundsUsd = Number(usd.toFixed(6));
    const { apiKey } = await this.cluster.createKey(customer, { name: 'capped', usage_limit_usd: fundsUsd });
    return { customer: { ...customer, apiKey }, fundsUsd };
  }

  /**
   * Returns the price of one response of the wave's mean length, in USD: what a payer with enough money is charged for a
   * short one, and the list price of the further tokens.
   */
  priceResponse(wave: Wave): Promise<number> {
    const tokens = Math.round(mean(wave.lengths));
    const { base, protocol, fields, directive } = wave;
    return getOrStart(this.prices, JSON.stringify([base, protocol, fields, directive, tokens]), async () => {
      const { customer, fundsUsd } = await this.createPayer(RICH_USD);
      const probe: Wave = { ...wave, lengths: [PROBE_TOKENS], delivery: 'immediate', name: `price-of-${wave.name}` };
      await this.sendFrom(probe, base, customer);
      const chargedUsd = fundsUsd - (await this.fetchBalance(customer)).balance;
      if (!(chargedUsd > 0)) throw new Error(`a response of ${wave.name} was not charged`);
      if (directive !== undefined) return chargedUsd;
      return chargedUsd + Number(fields?.n ?? 1) * (tokens - PROBE_TOKENS) * (await this.fetchTokenPrice(base));
    });
  }

  /** Returns the list price of an output token in USD. */
  private async fetchTokenPrice(model: string): Promise<number> {
    const response = await repeatFetch(() => fetch(`${this.cluster.gateways[0]}/v1/models?type=all`));
    const { data } = (await response.json()) as { data: readonly { id: string; pricing: { completion: string } }[] };
    const price = Number(data.find(({ id }) => id === model)?.pricing.completion);
    if (!(price > 0)) throw new Error(`${model} has no price`);
    return price;
  }

  /** Sends a wave to all gateways, by a proxy if it is private. */
  async sendFrom(wave: Wave, model: string, customer: Customer) {
    if (!wave.isPrivate) return sendWave(wave, model, this.cluster.gateways, customer);
    const proxies = await Promise.all(this.cluster.gateways.map((api) => startPrivateProxy(api, customer)));
    try {
      return await sendWave(
        wave,
        model,
        proxies.map(({ url }) => url),
        customer,
      );
    } finally {
      for (const { started } of proxies) await started.stop();
    }
  }

  /** Lets every gateway measure responses of these lengths, which a payer with enough money gets. */
  private async measureModel(wave: Wave, lengths: readonly number[]): Promise<string> {
    const model = this.takeModel(wave.base);
    const { customer } = await this.createPayer(RICH_USD);
    const all = this.cluster.gateways.flatMap(() => lengths);
    const { isCapped: _, ...rest } = wave;
    await this.sendFrom({ ...rest, name: `measure-${model}`, lengths: all }, model, customer);
    await sleep(SHARED_WITHIN_MS);
    return model;
  }

  private takeModel(base: string): string {
    const copies = COPIES[base];
    if (copies === undefined) return base;
    const next = (this.used.get(base) ?? 0) + 1;
    if (next > copies) throw new Error(`there are not enough copies of ${base}`);
    this.used.set(base, next);
    return formatCopyId(base, next);
  }
}

function getOrStart<T>(started: Map<string, Promise<T>>, key: string, start: () => Promise<T>): Promise<T> {
  const earlier = started.get(key);
  if (earlier) return earlier;
  const promise = start();
  started.set(key, promise);
  return promise;
}

/** Copies the catalogue, and adds copies of the models that waves use. @returns the directory of the copy */
async function copyCatalogue(directory: string): Promise<string> {
  const catalogue = path.join(directory, 'catalogue');
  await cp(path.join(root, 'libs/catalogue/data'), catalogue, { recursive: true });
  const file = path.join(catalogue, MODELS_FILE);
  const models = JSON.parse(await readFile(file, 'utf8')) as readonly ModelEntry[];
  const copies = models.flatMap(({ aliases: _, ...model }) =>
    Array.from({ length: COPIES[model.id] ?? 0 }, (_, i) => ({ ...model, id: formatCopyId(model.id, i + 1) })),
  );
  await writeFile(file, JSON.stringify([...models, ...copies]));
  return catalogue;
}

function formatCopyId(base: string, number: number): string {
  return `${base}-copy-${number}`;
}

async function startPrivateProxy(
  api: string,
  { apiKey }: Customer,
): Promise<{ readonly started: StartedProcess; readonly url: string }> {
  const env = { PPQ_API_KEY: apiKey, PPQ_API_BASE: api, ALLOW_UNATTESTED: '1', PORT: '0' };
  const started = await startApp('private-proxy', env);
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(started.readyLine) ?? [];
  return { started, url };
}
