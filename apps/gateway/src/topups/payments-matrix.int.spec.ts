/**
 * Payment backend × method × scenario of a payment × how the payment is reported. To add a backend, add its settings to
 * `BACKENDS` and its methods to `CELLS`. Each credit is a literal in USD.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Clock } from '#application';
import { verify } from '#audit';
import { readPayments } from '#catalogue';
import type { PaymentTerms } from '#domain';
import {
  addPaymentMethods,
  copyCatalogue,
  getCoin,
  type PayOptions,
  type RequestedTopup,
  SandboxWallet,
  SCENARIOS,
  type ScenarioName,
  type ScenarioOutcome,
  ScenarioRunner,
  sampleCases,
  TestWorld,
} from '#testing';

interface Cells {
  readonly backend: string;
  readonly method: string;
  /** In USD. */
  readonly asked: number;
  /** The credit at the end of each scenario, in USD. */
  readonly credits: Partial<Readonly<Record<ScenarioName, string>>>;
  /** Scenarios that are not tested here, with the reason or the place of their test. */
  readonly toldElsewhere?: Partial<Readonly<Record<ScenarioName, string>>>;
  /** Payments are not reported, so only polls find them. */
  readonly unreported?: true;
}

/** Lightning top-ups have a bonus of 5 %. */
const LIGHTNING = { exact: '10.5', overpayment: '20.505', afterExpiry: '10.5' };

/** A coin and a method that are not shipped: they consist of data only, and use an existing backend. */
const SIXTH: PaymentTerms = {
  coins: [
    {
      code: 'DOGE',
      name: 'Dogecoin',
      decimals: 8,
      step: 1,
      currencies: { DOGE: 8 },
      rates: { kraken: ['DOGEUSD', 'DOGEUSD'], coinbase: 'DOGE-USD', coingecko: 'doge' },
      link: { scheme: 'dogecoin', amount: 'amount' },
    },
  ],
  methods: [
    {
      method: 'doge',
      displayName: 'Dogecoin',
      coin: 'DOGE',
      destination: 'address',
      backends: ['btcpay'],
      currencies: ['USD', 'DOGE'],
      limits: { USD: { min: '2', max: '1000' }, DOGE: { min: '10', max: '5000' } },
      expiryMinutes: 60,
      bonus: null,
      confirmations: 6,
      listed: true,
    },
  ],
};
const USD_PER_DOGE = '0.25';

/** All are set, because a backend defaults to the sandbox only if no other backend is set. */
const BACKENDS = {
  LND_REST_URL: 'sandbox:/lnd',
  BTCPAY_URL: 'sandbox:/btcpay',
  BTCPAY_STORE_ID: 'sandbox',
  BTCPAY_API_KEY: 'sandbox',
  BTCPAY_WEBHOOK_SECRET: 'sandbox',
  CLN_REST_URL: 'sandbox:/cln',
  CLN_RUNE: 'sandbox',
  PHOENIXD_URL: 'sandbox:/phoenixd',
  PHOENIXD_PASSWORD: 'sandbox',
  PHOENIXD_WEBHOOK_SECRET: 'sandbox',
  MONERO_WALLET_RPC_URL: 'sandbox:/monero',
  MONERO_WALLET_RPC_LOGIN: 'sandbox:sandbox',
};

const CELLS: readonly Cells[] = [
  { backend: 'lnd', method: 'btc-lightning', asked: 10, credits: LIGHTNING },
  { backend: 'btcpay', method: 'btc-lightning', asked: 10, credits: LIGHTNING },
  { backend: 'cln', method: 'btc-lightning', asked: 10, credits: LIGHTNING },
  { backend: 'phoenixd', method: 'btc-lightning', asked: 10, credits: LIGHTNING },
  {
    backend: 'nwc',
    method: 'btc-lightning',
    asked: 10,
    unreported: true,
    credits: { exact: '10.5', afterExpiry: '10.5' },
    toldElsewhere: { overpayment: 'a wallet reports the amount of its invoice, not of the payment' },
  },
  {
    backend: 'btcpay',
    method: 'btc',
    asked: 20,
    credits: {
      exact: '20',
      partial: '5',
      overpayment: '40',
      afterExpiry: '20',
      twice: '25',
      lowFee: '0',
      replacement: '5',
      doubleSpend: '0',
      reversal: '0',
    },
  },
  {
    backend: 'btcpay',
    method: 'ltc',
    asked: 8,
    credits: {
      exact: '8',
      partial: '2',
      overpayment: '16',
      afterExpiry: '8',
      twice: '10',
      lowFee: '0',
      replacement: '2',
      doubleSpend: '0',
      reversal: '0',
    },
  },
  {
    backend: 'btcpay',
    method: 'lbtc',
    asked: 12,
    credits: {
      exact: '12',
      partial: '3',
      overpayment: '24',
      afterExpiry: '12',
      twice: '15',
      lowFee: '0',
      replacement: '3',
      doubleSpend: '0',
      reversal: '0',
    },
  },
  {
    backend: 'btcpay',
    method: 'xmr',
    asked: 6,
    credits: {
      exact: '6',
      partial: '1.5',
      overpayment: '12',
      afterExpiry: '6',
      twice: '7.5',
      lowFee: '0',
      replacement: '1.5',
      doubleSpend: '0',
      reversal: '0',
    },
  },
  {
    backend: 'monero',
    method: 'xmr',
    asked: 6,
    unreported: true,
    credits: {
      exact: '6',
      partial: '1.5',
      overpayment: '12',
      afterExpiry: '6',
      twice: '7.5',
      lowFee: '0',
      replacement: '1.5',
      doubleSpend: '0',
    },
    toldElsewhere: { reversal: 'is accepted after ten more blocks: monero.int.spec.ts, npm run prove:money' },
  },
  {
    backend: 'btcpay',
    method: 'doge',
    asked: 4,
    credits: {
      exact: '4',
      partial: '1',
      overpayment: '8',
      afterExpiry: '4',
      twice: '5',
      lowFee: '0',
      replacement: '1',
      doubleSpend: '0',
      reversal: '0',
    },
  },
];

/** Impossible scenarios, by method, with the reason. */
const CANNOT_BE: Readonly<Record<string, Partial<Readonly<Record<ScenarioName, string>>>>> = {
  'btc-lightning': {
    partial: 'a node accepts no less than the amount of its invoice',
    twice: 'an invoice is paid once',
    lowFee: 'a payment is final when it arrives',
    replacement: 'as above',
    doubleSpend: 'as above',
    reversal: 'as above',
  },
};

type Report = NonNullable<PayOptions['report']>;

/** `never`: only polls find the payment. `once`: webhooks and subscriptions report it as well. */
const REPORTS: readonly Report[] = ['never', 'once'];
const POOR_REPORTS: readonly Report[] = ['twice', 'reordered', 'forged'];
/** Scenarios that are tested with unreliable reports. */
const REPORTED_POORLY: readonly ScenarioName[] = ['exact', 'reversal'];

/** The loss of a payment is never reported, so only polls find it. */
const NEVER_HINTED: readonly ScenarioName[] = ['doubleSpend', 'reversal'];

interface Row extends Cells {
  readonly story: ScenarioName;
  readonly report: Report;
  readonly credit: string;
}

const rows = (reportsOf: (story: ScenarioName) => readonly Report[]): readonly Row[] =>
  CELLS.flatMap((cells) =>
    Object.entries(cells.credits).flatMap(([name, credit]) => {
      const story = name as ScenarioName;
      const reports = reportsOf(story).filter((report) => !cells.unreported || report === 'never');
      return reports.map((report) => ({ ...cells, story, report, credit }));
    }),
  );

/** With a running clock. */
const ROWS = sampleCases(
  rows((story) => (REPORTED_POORLY.includes(story) ? [...REPORTS, ...POOR_REPORTS] : REPORTS)),
  22, // each method of each backend, each scenario and each report
  29,
);
/** With a stopped clock, so that only reports trigger polls. */
const HINTED_ROWS = sampleCases(
  rows((story) => {
    if (NEVER_HINTED.includes(story)) return [];
    return story === 'exact' ? ['once', 'twice', 'reordered'] : ['once'];
  }),
  13, // as above
);
/** With a stopped clock, and without a trusted report: the payment is found when the clock runs again. */
const UNHINTED_ROWS = sampleCases(
  rows((story) => (story === 'exact' ? ['never', 'forged'] : [])),
  6, // three with each report
  1,
);

const outcomes = new Map<Row, ScenarioOutcome | Error>();
const opened = new AsyncDisposableStack();
let terms: PaymentTerms;
let world: TestWorld;
let teller: ScenarioRunner;
let foundUnhinted: readonly Row[];
beforeAll(async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-payments-'));
  opened.defer(() => rm(directory, { recursive: true }));
  await copyCatalogue(directory, []);
  await addPaymentMethods(directory, SIXTH);
  terms = readPayments(directory);
  world = await TestWorld.openWithSagas(async (sandbox) => {
    const made = await fetch(`${sandbox}/nwc/wallets`, { method: 'POST' });
    const { nwc_url } = (await made.json()) as { nwc_url: string };
    return { CATALOGUE_DIR: directory, ...BACKENDS, NWC_RECEIVE_URL: nwc_url };
  });
  opened.defer(() => world.close());
  await world.send('PUT', '/rates', { api: world.sandbox, body: { doge_usd: USD_PER_DOGE } });
  teller = new ScenarioRunner(world);
  opened.defer(() => teller.close());
  const wallet = new SandboxWallet(world.sandbox);
  const webhook = await wallet.addWebhook(`${world.api}/topup/webhooks/btcpay`);
  await wallet.setPhoenixdWebhook(`${world.api}/topup/webhooks/phoenixd`);
  const gateways = await gatewaysBy(new Set(CELLS.map(({ backend }) => backend)));
  const apiOf = ({ backend }: Row) => gateways.get(backend) ?? world.api;
  const tellAll = (all: readonly Row[]) => Promise.all(all.map((row) => tell(row, ask(row, apiOf(row)))));
  await tellAll(ROWS);
  const goOn = world.stopClock();
  const unhinted = await Promise.all(UNHINTED_ROWS.map(async (row) => [row, await ask(row, apiOf(row))] as const));
  await world.waitUntil(() => wallet.isWebhookDelivered(webhook)); // BTCPay also reports new invoices
  await waitForFirstPolls(unhinted.map(([, asked]) => asked));
  await tellAll(HINTED_ROWS);
  const found = Promise.all(unhinted.map(([row, asked]) => tell(row, Promise.resolve(asked))));
  await tellAll(HINTED_ROWS.filter(({ story }) => story === 'exact')); // in this time, polls would find the others
  foundUnhinted = UNHINTED_ROWS.filter((row) => outcomes.has(row));
  goOn();
  await found;
});
afterAll(() => opened.disposeAsync());

/**
 * Waits until the top-ups were polled once, as each is after its invoice. With a stopped clock, they are not due again.
 */
async function waitForFirstPolls(topups: readonly RequestedTopup[]): Promise<void> {
  const database = new pg.Client({ connectionString: world.databaseUrl });
  await database.connect();
  const polled = `select from es.due where workflow = 'topups' and id = any($1) and at > $2`;
  const values = [topups.map(({ topupId }) => topupId), world.getService(Clock).now()];
  await world.waitUntil(async () => (await database.query(polled, values)).rowCount === topups.length);
  await database.end();
}

/** Starts one gateway per backend, which prefers that backend, and returns its URL by backend. */
async function gatewaysBy(backends: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const opening = [...backends].map(async (name) => {
    const methods = CELLS.filter(({ backend }) => backend === name).map(({ method }) => [method, name]);
    return [name, await world.addGateway({ topupBackends: Object.fromEntries(methods) })] as const;
  });
  return new Map(await Promise.all(opening));
}

function ask({ method, asked }: Row, api: string): Promise<RequestedTopup> {
  const coin = getCoin(terms, terms.methods.find((each) => each.method === method)?.coin ?? '');
  return teller.requestTopup(coin, method, asked, api);
}

async function tell(row: Row, asked: Promise<RequestedTopup>): Promise<void> {
  const told = asked.then((made) => teller.run(row.story, made, row.report));
  outcomes.set(row, await told.catch((error: Error) => error));
}

test('the selected rows have each method of each backend, each scenario and each report', () => {
  const listValues = (rowsToList: readonly Row[]) =>
    new Set(rowsToList.flatMap(({ backend, method, story, report }) => [`${method} by ${backend}`, story, report]));
  const all = listValues(rows(() => [...REPORTS, ...POOR_REPORTS]));
  expect(listValues(ROWS)).toEqual(all);
});

describe('every scenario of a method is tested, left out for a stated reason, or impossible', () => {
  test.each(CELLS)('$method by $backend', ({ method, credits, toldElsewhere = {} }) => {
    const told = [credits, toldElsewhere, CANNOT_BE[method] ?? {}].flatMap(Object.keys);
    expect(told.toSorted()).toEqual(Object.keys(SCENARIOS).toSorted());
  });
});

async function isAsItShould(row: Row): Promise<void> {
  const outcome = outcomes.get(row);
  if (!outcome || outcome instanceof Error) throw outcome;
  await world.waitUntil(async () => (await world.fetchBalance(outcome.topup.account)) === row.credit);
  expect(outcome.recorded).toBe(outcome.paid);
}

test('supports a coin that is not shipped, with data only', async () => {
  const { supported_methods } = (await world.get('/topup/payment-methods')).body;
  expect(supported_methods.map((each: { method: string }) => each.method)).toContain('doge');
  const asked = outcomes.get(ROWS.find(({ method, story }) => method === 'doge' && story === 'exact') as Row);
  expect(asked).toMatchObject({ topup: { units: 1_600_000_000n }, recorded: 1_600_000_000n });
});

describe('the credit', () => {
  test.each(ROWS)('$backend, $method, $story, reported $report: $credit USD', isAsItShould);
});

describe('the credit while only reports trigger polls', () => {
  test.each(HINTED_ROWS)('$backend, $method, $story, reported $report: $credit USD', isAsItShould);
});

describe('the credit of a payment without a trusted report, which only polls find', () => {
  test.each(UNHINTED_ROWS)('$backend, $method, $story, reported $report: $credit USD', async (row) => {
    expect(foundUnhinted).not.toContain(row);
    await isAsItShould(row);
  });
});

test('leaves no drift in the ledger', async () => {
  const lines: string[] = [];
  expect(await verify(world.foundation, (line) => lines.push(line))).toBe(true);
  expect(lines.join('\n')).toContain('drift');
});
