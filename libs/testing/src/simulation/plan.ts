/**
 * A plan is what happens to a simulated installation: who does what when, and which faults occur. It is plain data that
 * follows from a seed, so that it can be printed, and a failing one can be reduced to the steps that matter.
 */
import { MIN_AUTO_TOPUP_THRESHOLD_USD } from '#application';
import { Chance } from './chance.ts';
import { NO_STORE_FAULTS, type Outage, type StoreFaults } from './faulty-event-store.ts';
import { NO_PAYMENT_FAULTS, type PaymentFaults } from './simulated-payments.ts';
import { NO_WALLET_FAULTS, type WalletFaults } from './simulated-wallets.ts';

/** Pico-USD, as plans have all amounts: JSON has no bigint. */
type Amount = string;

interface Timed {
  /** Milliseconds since the start of the simulation. */
  readonly atMs: number;
}

/** A client sends a paid request to a gateway. */
export interface RequestStep extends Timed {
  readonly step: 'request';
  readonly id: string;
  /** Of a request that is sent several times. */
  readonly idempotencyKey?: string;
  readonly gateway: number;
  readonly account: string;
  /** Index of the API key; null: the request has the `credit_id`. */
  readonly key: number | null;
  /** The gateway knows only that the response has at most so many tokens. */
  readonly maxTokens: number;
  /** What the provider generates. */
  readonly tokens: number;
  readonly tokensPerSecond: number;
  /** Whether only a part of the maximum price is held at first, and the hold is extended while tokens arrive. */
  readonly isExtensible: boolean;
  /** The provider fails after it has generated all tokens, so the customer owes nothing. */
  readonly fails: boolean;
  /** The client disconnects after this time. */
  readonly disconnectsAfterMs?: number;
  /** The client sends the request again, with the same Idempotency-Key, whatever became of it. */
  readonly repeats?: readonly { readonly afterMs: number; readonly gateway: number }[];
}

/**
 * What becomes of a payment: it may need confirmations, and may be lost or reversed later. A refunded one is refunded in
 * part and then lost, both in one report.
 */
export interface PlannedPayment {
  /** Milliseconds after the customer got the invoice. */
  readonly afterMs: number;
  /** Share of the amount of the invoice. */
  readonly percent: number;
  readonly course: 'final' | 'confirmed' | 'lost' | 'reversed' | 'disputed' | 'refunded';
  /** The payment backend reports the payment also for the invoice of this top-up. */
  readonly alsoFor?: string;
}

/** A customer requests a top-up, and pays if it gets an invoice. */
export interface TopupStep extends Timed {
  readonly step: 'topUp';
  readonly id: string;
  readonly gateway: number;
  readonly account: string;
  readonly method: 'btc-lightning' | 'btc' | 'xmr' | 'card';
  /** USD. */
  readonly usd: string;
  readonly payments: readonly PlannedPayment[];
}

/** What the operator does. */
export type OperatorStep =
  | (Timed & { readonly step: 'open'; readonly account: string; readonly keys: readonly KeyTerms[] })
  | (Timed & { readonly step: 'adjust'; readonly account: string; readonly id: string; readonly amount: Amount })
  | (Timed & {
      readonly step: 'changeKey';
      readonly account: string;
      readonly key: number;
      readonly change: 'revoke' | 'block' | 'unblock' | { readonly limit: Amount | null } | { readonly reset: Reset };
    });

/** A customer connects a wallet, which is then requested to pay while the balance is low, or disconnects it. */
export type WalletStep =
  | (Timed & {
      readonly step: 'connectWallet';
      readonly gateway: number;
      readonly account: string;
      readonly wallet: string;
      /** USD. */
      readonly threshold: string;
      readonly usd: string;
    })
  | (Timed & { readonly step: 'disconnectWallet'; readonly gateway: number; readonly account: string });

export type Step = OperatorStep | RequestStep | TopupStep | WalletStep | FailureStep;

/** A process fails, and runs again after a while; or its connections to the database end. */
export interface FailureStep extends Timed {
  readonly step: 'kill' | 'loseHost' | 'stop' | 'suspend' | 'disconnect';
  readonly role: 'gateway' | 'leader';
  readonly index: number;
  readonly lengthMs: number;
}

export type Reset = 'daily' | 'weekly' | 'monthly' | null;

export interface KeyTerms {
  readonly limit: Amount | null;
  readonly reset: Reset;
  /** Milliseconds after the start of the simulation. */
  readonly expiresAtMs: number | null;
}

export interface Plan {
  readonly seed: string;
  /** ISO 8601. */
  readonly startsAt: string;
  /** All steps are taken by then. */
  readonly durationMs: number;
  /** Number of processes that compete for leases. */
  readonly leaders: number;
  /** How far the clock of each gateway is ahead. */
  readonly skewsMs: readonly number[];
  readonly leaderSkewsMs: readonly number[];
  readonly eventsPerSnapshot: number;
  /** Bytes of stream states that a process caches. */
  readonly cacheBytes: number;
  readonly storeFaults: StoreFaults;
  readonly paymentFaults: PaymentFaults;
  readonly walletFaults: WalletFaults;
  /** How often calls of the database fail, from 0 to 1. It has all but events, snapshots and what is subscribed to. */
  readonly databaseFaults: number;
  readonly outages: readonly Outage[];
  readonly databaseOutages: readonly Outage[];
  readonly steps: readonly Step[];
}

const USD = 1_000_000_000_000n;
/** Price of a token; its cost is half of it. */
export const TOKEN_PRICE = 20_000_000n;
/** How far a clock may deviate: a process with a larger error knows that it is not reliable. */
const MAX_SKEW_MS = 1_500;
const OPENED_BY_MS = 2_000;
/** After this time a process that is suspended seems dead to the others. */
const LONG_FAILURE_MS = 20_000;
const MAX_FAILURE_MS = 60_000;
/** Time before midnight, and around it, in the plans that start shortly before. */
const MIDNIGHT_MS = 60_000;
const NOON = '2026-03-01T12:00:00.000Z';
/** More than the ended holds that an account remembers. */
const FORGOTTEN_ENDS = 1_100;
const BUSY_REQUESTS = 60;
const BUSY_BALANCE_USD = 1;
const AROUND_MIDNIGHT_MS = 3_000;

/** Returns the plan of a seed. Each seed has some of the faults, so that rare ones are not hidden by frequent ones. */
export function createPlan(seed: string): Plan {
  const chance = new Chance(seed);
  return chance.isTrue(0.02, 'busy') ? createBusyPlan(seed, chance.derive('busy')) : createMixedPlan(seed, chance);
}

/**
 * A busy account: while one gateway is suspended, another one ends more requests than an account remembers. Charges of
 * the first gateway whose responses were lost are then repeated.
 */
function createBusyPlan(seed: string, chance: Chance): Plan {
  const account = 'account0';
  const suspendedAtMs = 5_000;
  const requests = (gateway: number, count: number, { fromMs, untilMs }: { fromMs: number; untilMs: number }) =>
    Array.from({ length: count }, (_, i): RequestStep => {
      const label = `${gateway} ${i}`;
      const tokens = chance.integer(1, 20, `${label} tokens`);
      return {
        atMs: Math.round(chance.between(fromMs, untilMs, `${label} at`)),
        step: 'request',
        id: `${account}-request${gateway}-${i}`,
        gateway,
        account,
        key: null,
        maxTokens: tokens,
        tokens,
        tokensPerSecond: 200,
        isExtensible: false,
        fails: false,
      };
    });
  const steps: Step[] = [
    { atMs: 0, step: 'open', account, keys: [] },
    { atMs: 1_500, step: 'adjust', account, id: `${account}-credit`, amount: toAmount(BUSY_BALANCE_USD) },
    {
      atMs: suspendedAtMs,
      step: 'suspend',
      role: 'gateway',
      index: 0,
      lengthMs: chance.integer(5_000, 9_000, 'length'),
    },
    ...requests(0, BUSY_REQUESTS, { fromMs: suspendedAtMs - 300, untilMs: suspendedAtMs }),
    ...requests(1, FORGOTTEN_ENDS, { fromMs: suspendedAtMs, untilMs: suspendedAtMs + 4_000 }),
  ];
  return {
    seed,
    startsAt: NOON,
    durationMs: 20_000,
    leaders: 1,
    skewsMs: [0, 0],
    leaderSkewsMs: [0],
    eventsPerSnapshot: 1_000,
    cacheBytes: 100_000_000,
    storeFaults: { ...NO_STORE_FAULTS, lostResponse: 0.3 },
    paymentFaults: NO_PAYMENT_FAULTS,
    walletFaults: NO_WALLET_FAULTS,
    databaseFaults: 0,
    outages: [],
    databaseOutages: [],
    steps: steps.toSorted((a, b) => a.atMs - b.atMs),
  };
}

function createMixedPlan(seed: string, chance: Chance): Plan {
  const durationMs = Math.round(chance.between(30_000, 160_000, 'duration'));
  const gateways = chance.integer(1, 4, 'gateways');
  const leaders = chance.integer(1, 2, 'leaders');
  const accounts = Array.from({ length: chance.integer(1, 4, 'accounts') }, (_, i) => `account${i}`);
  const isBeforeMidnight = chance.isTrue(0.3, 'midnight');
  const isFocused = chance.isTrue(0.25, 'focused');
  const failures = isFocused
    ? [createSuspension(chance.derive('suspension'), durationMs, gateways)]
    : createFailures(chance.derive('failures'), durationMs, { gateways, leaders });
  const failuresMs = failures.map(({ atMs }) => atMs);
  const eventfulMs = failuresMs.map((atMs) => atMs - chance.chooseScaled(10, 20_000, `before ${atMs}`));
  const returnsMs = failures.map(({ atMs, lengthMs }) => atMs + lengthMs);
  eventfulMs.push(...returnsMs);
  if (isBeforeMidnight) eventfulMs.push(MIDNIGHT_MS - AROUND_MIDNIGHT_MS, MIDNIGHT_MS - AROUND_MIDNIGHT_MS / 2);
  const steps = [
    ...accounts.flatMap((account) =>
      createAccountSteps(account, {
        chance: chance.derive(account),
        durationMs,
        gateways,
        eventfulMs,
        failuresMs,
        isFocused,
      }),
    ),
    ...failures,
  ];
  return {
    seed,
    startsAt: isBeforeMidnight ? '2026-02-28T23:59:00.000Z' : NOON,
    durationMs,
    leaders,
    skewsMs: Array.from({ length: gateways }, (_, i) =>
      chance.isTrue(0.5, 'skews') ? chance.between(-MAX_SKEW_MS, MAX_SKEW_MS, `skew ${i}`) : 0,
    ),
    leaderSkewsMs: Array.from({ length: leaders }, (_, i) =>
      chance.isTrue(0.5, 'skews of leaders') ? chance.between(-MAX_SKEW_MS, MAX_SKEW_MS, `skew of leader ${i}`) : 0,
    ),
    eventsPerSnapshot: chance.pick([3, 10, 1_000], 'snapshots'),
    cacheBytes: chance.pick([1, 20_000, 100_000_000], 'cache'),
    storeFaults: createFaults(NO_STORE_FAULTS, chance.derive('store')),
    paymentFaults: createFaults(NO_PAYMENT_FAULTS, chance.derive('payments')),
    walletFaults: createFaults(NO_WALLET_FAULTS, chance.derive('wallets')),
    databaseFaults: chance.isTrue(0.3, 'database') ? chance.chooseSkewed(0.002, 0.2, 'database faults') : 0,
    outages: createOutages(chance.derive('outages'), durationMs, { returnsMs, isFocused }),
    databaseOutages: createOutages(chance.derive('database outages'), durationMs, { returnsMs, isFocused }),
    steps: steps.toSorted((a, b) => a.atMs - b.atMs),
  };
}

function createFaults<Faults extends object>(none: Faults, chance: Chance): Faults {
  const rates = Object.keys(none).map((fault) => [
    fault,
    chance.isTrue(0.4, `has ${fault}`) ? chance.chooseScaled(0.003, 0.3, fault) : 0,
  ]);
  return Object.fromEntries(rates);
}

/** Some outages last until a process has returned. */
function createOutages(
  chance: Chance,
  durationMs: number,
  { returnsMs, isFocused }: { readonly returnsMs: readonly number[]; readonly isFocused: boolean },
): readonly Outage[] {
  const count = chance.isTrue(0.35, 'any') ? chance.integer(1, 3, 'count') : 0;
  return Array.from({ length: count }, (_, i) => {
    const isEventful = returnsMs.length > 0 && chance.isTrue(isFocused ? 0.9 : 0.4, `${i} eventful`);
    const returnMs = isEventful ? chance.pick(returnsMs, `${i} event`) : 0;
    const beginsMs = isEventful
      ? returnMs - chance.between(0, 20_000, `${i} before`)
      : chance.between(OPENED_BY_MS, durationMs, `${i} from`);
    const fromMs = Math.max(Math.round(beginsMs), OPENED_BY_MS);
    const untilMs = isEventful
      ? Math.max(returnMs, fromMs) + Math.round(chance.chooseScaled(10, 10_000, `${i} after`))
      : fromMs + Math.round(chance.chooseSkewed(200, 60_000, `${i} length`));
    return { fromMs, untilMs, mode: chance.pick(['refusing', 'frozen'], `${i} mode`) };
  });
}

/** A gateway is suspended for so long that it seems dead. */
function createSuspension(chance: Chance, durationMs: number, gateways: number): FailureStep {
  return {
    atMs: Math.round(chance.between(OPENED_BY_MS, durationMs / 2, 'at')),
    step: 'suspend',
    role: 'gateway',
    index: chance.integer(0, gateways - 1, 'index'),
    lengthMs: Math.round(chance.between(LONG_FAILURE_MS, MAX_FAILURE_MS, 'length')),
  };
}

function createFailures(
  chance: Chance,
  durationMs: number,
  { gateways, leaders }: { readonly gateways: number; readonly leaders: number },
): readonly FailureStep[] {
  const count = chance.isTrue(0.6, 'any') ? chance.integer(1, 6, 'count') : 0;
  return Array.from({ length: count }, (_, i): FailureStep => {
    const role = chance.isTrue(0.3, `${i} role`) ? 'leader' : 'gateway';
    const count = role === 'leader' ? leaders : gateways;
    return {
      atMs: Math.round(chance.between(OPENED_BY_MS, durationMs, `${i} at`)),
      step: chance.pick(['kill', 'loseHost', 'stop', 'suspend', 'suspend', 'disconnect'] as const, `${i} step`),
      role,
      index: chance.integer(0, count - 1, `${i} index`),
      lengthMs: Math.round(
        chance.isTrue(0.5, `${i} long`)
          ? chance.between(LONG_FAILURE_MS, MAX_FAILURE_MS, `${i} length`)
          : chance.chooseSkewed(100, MAX_FAILURE_MS, `${i} length`),
      ),
    };
  });
}

interface AccountContext {
  readonly chance: Chance;
  readonly durationMs: number;
  readonly gateways: number;
  /** Times at which something happens that requests should meet. */
  readonly eventfulMs: readonly number[];
  readonly failuresMs: readonly number[];
  /** Whether most happens around one suspension: what others do for a gateway that seems dead meets its return. */
  readonly isFocused: boolean;
}

function createAccountSteps(account: string, { chance, ...context }: AccountContext): readonly Step[] {
  const { durationMs } = context;
  const balance = toAmount(chance.chooseSkewed(0.02, 3, 'balance'));
  const keys = Array.from({ length: chance.integer(0, 3, 'keys') }, (_, i): KeyTerms => {
    const isLimited = chance.isTrue(0.7, `key ${i} limited`);
    return {
      limit: isLimited ? toAmount(chance.chooseSkewed(0.01, 1, `key ${i} limit`)) : null,
      reset: isLimited ? chance.pick<Reset>([null, 'daily', 'weekly', 'monthly'], `key ${i} reset`) : null,
      expiresAtMs: chance.isTrue(0.2, `key ${i} expires`)
        ? chance.integer(10_000, durationMs, `key ${i} expiry`)
        : null,
    };
  });
  const at = (label: string) => Math.round(chance.between(OPENED_BY_MS, durationMs, label));
  const steps: Step[] = [
    { atMs: chance.integer(0, OPENED_BY_MS - 1_000, 'open'), step: 'open', account, keys },
    { atMs: OPENED_BY_MS - 500, step: 'adjust', account, id: `${account}-credit`, amount: balance },
    ...createTopups(account, { chance: chance.derive('topups'), ...context }),
    ...createWalletSteps(account, { chance: chance.derive('wallet'), ...context }),
  ];
  for (let i = 0; i < chance.integer(0, 2, 'adjustments'); i++) {
    const amount = toAmount(chance.between(-0.5, 0.5, `adjustment ${i}`));
    steps.push({ atMs: at(`adjustment ${i} at`), step: 'adjust', account, id: `${account}-adjustment${i}`, amount });
  }
  const requests = createRequests(account, { chance: chance.derive('requests'), ...context }, keys.length);
  for (let i = 0; keys.length > 0 && i < chance.integer(0, 4, 'changes'); i++) {
    const change = chance.pick(
      [
        'revoke',
        'block',
        'unblock',
        { limit: toAmount(chance.chooseSkewed(0.01, 1, `limit ${i}`)) },
        { limit: toAmount(chance.chooseSkewed(0.01, 1, `limit ${i}`)) },
        { limit: null },
        { reset: chance.pick<Reset>([null, 'daily', 'monthly'], `reset ${i}`) },
      ] as const,
      `change ${i}`,
    );
    const key = chance.integer(0, keys.length - 1, `change ${i} key`);
    const timesMs = context.isFocused ? context.failuresMs : requests.map(({ atMs }) => atMs);
    const isEventful = timesMs.length > 0 && chance.isTrue(0.6, `change ${i} eventful`);
    const atMs = isEventful
      ? chance.pick(timesMs, `change ${i} event`) + Math.round(chance.chooseScaled(1, MAX_SKEW_MS, `change ${i} after`))
      : at(`change ${i} at`);
    steps.push({ atMs, step: 'changeKey', account, key, change });
  }
  return [...steps, ...requests];
}

/** Requests arrive in bursts, as those of an agent do. */
function createRequests(
  account: string,
  { chance, durationMs, gateways, eventfulMs, isFocused }: AccountContext,
  keys: number,
): readonly Step[] {
  const bursts = chance.integer(1, 4, 'bursts');
  return Array.from({ length: bursts }, (_, burst) => {
    const isEventful = eventfulMs.length > 0 && chance.isTrue(isFocused ? 0.9 : 0.6, `${burst} eventful`);
    const startMs = isEventful
      ? Math.max(chance.pick(eventfulMs, `${burst} event`), OPENED_BY_MS)
      : chance.between(OPENED_BY_MS, durationMs, `${burst} start`);
    const lengthMs = chance.chooseSkewed(10, 30_000, `${burst} length`);
    const count = Math.round(chance.chooseSkewed(1, 40, `${burst} count`));
    return Array.from({ length: count }, (__, i): RequestStep => {
      const label = `${burst} ${i}`;
      const tokens = Math.round(chance.chooseScaled(5, 4_000, `${label} tokens`));
      const disconnects = chance.isTrue(0.15, `${label} disconnects`);
      return {
        atMs: Math.round(startMs + chance.between(0, lengthMs, `${label} at`)),
        step: 'request',
        id: `${account}-request${burst}-${i}`,
        gateway: chance.integer(0, gateways - 1, `${label} gateway`),
        account,
        key: keys > 0 && chance.isTrue(0.7, `${label} with key`) ? chance.integer(0, keys - 1, `${label} key`) : null,
        maxTokens: Math.round(tokens * chance.chooseSkewed(1, 20, `${label} max`)),
        tokens,
        tokensPerSecond: Math.round(chance.chooseSkewed(20, 2_000, `${label} speed`)),
        isExtensible: chance.isTrue(0.5, `${label} isExtensible`),
        fails: chance.isTrue(0.1, `${label} fails`),
        ...(chance.isTrue(0.3, `${label} repeated`) ? { repeats: createRepeats(chance.derive(label), gateways) } : {}),
        ...(disconnects ? { disconnectsAfterMs: Math.round(chance.chooseSkewed(5, 20_000, `${label} patience`)) } : {}),
      };
    });
  }).flat();
}

/** Some repeats race with the request, others come when it has ended or its gateway is dead. */
function createRepeats(chance: Chance, gateways: number) {
  return Array.from({ length: chance.integer(1, 4, 'repeats') }, (_, i) => ({
    afterMs: Math.round(chance.chooseScaled(0.5, 300_000, `${i} after`)),
    gateway: chance.integer(0, gateways - 1, `${i} gateway`),
  }));
}

const MIN_USD = { 'btc-lightning': 0.1, btc: 10, xmr: 5, card: 5 } as const;

function createTopups(account: string, { chance, durationMs, gateways, eventfulMs }: AccountContext): readonly Step[] {
  const count = chance.integer(0, 3, 'count');
  const id = (i: number) => `${account}-topup${i}`;
  const pickMethod = (i: number) =>
    chance.pick(['btc-lightning', 'btc-lightning', 'btc', 'xmr', 'card'] as const, `${i} method`);
  return Array.from({ length: count }, (_, i): Step => {
    const method = pickMethod(i);
    const isEventful = eventfulMs.length > 0 && chance.isTrue(0.5, `${i} eventful`);
    const atMs = isEventful
      ? chance.pick(eventfulMs, `${i} event`)
      : chance.between(OPENED_BY_MS, durationMs, `${i} at`);
    const payments = method === 'btc-lightning' ? chance.integer(0, 1, `${i} paid`) : chance.integer(0, 3, `${i} paid`);
    return {
      atMs: Math.round(Math.max(atMs, OPENED_BY_MS)),
      step: 'topUp',
      id: id(i),
      gateway: chance.integer(0, gateways - 1, `${i} gateway`),
      account,
      method,
      usd: chance.chooseScaled(MIN_USD[method], 50, `${i} usd`).toFixed(2),
      payments: Array.from({ length: payments }, (__, n) => {
        const label = `${i} payment ${n}`;
        const course =
          method === 'btc-lightning'
            ? 'final'
            : chance.pick(
                ['final', 'confirmed', 'confirmed', 'lost', 'reversed', 'disputed', 'refunded'] as const,
                `${label} course`,
              );
        const isShared = i > 0 && pickMethod(i - 1) === method && chance.isTrue(0.3, `${label} shared`);
        return {
          afterMs: Math.round(chance.chooseSkewed(1, 30_000, `${label} after`)),
          percent: method === 'btc-lightning' ? 100 : chance.pick([100, 100, 50, 130, 1_000], `${label} percent`),
          course,
          ...(isShared ? { alsoFor: id(i - 1) } : {}),
        };
      }),
    };
  });
}

/** Thresholds are above most balances, so attempts follow each other until a limit of the day. */
function createWalletSteps(
  account: string,
  { chance, durationMs, gateways, eventfulMs }: AccountContext,
): readonly Step[] {
  const count = chance.isTrue(0.4, 'any') ? chance.integer(1, 3, 'count') : 0;
  return Array.from({ length: count }, (_, i): Step => {
    const isEventful = eventfulMs.length > 0 && chance.isTrue(0.4, `${i} eventful`);
    const atMs = isEventful
      ? chance.pick(eventfulMs, `${i} event`)
      : chance.between(OPENED_BY_MS, durationMs, `${i} at`);
    const common = {
      atMs: Math.round(Math.max(i === 0 ? Math.min(atMs, durationMs / 3) : atMs, OPENED_BY_MS)),
      gateway: chance.integer(0, gateways - 1, `${i} gateway`),
      account,
    };
    if (i > 0 && chance.isTrue(0.4, `${i} disconnects`)) return { ...common, step: 'disconnectWallet' };
    return {
      ...common,
      step: 'connectWallet',
      wallet: `${account}-wallet${chance.integer(0, 1, `${i} wallet`)}`,
      threshold: chance.chooseScaled(MIN_AUTO_TOPUP_THRESHOLD_USD, 12, `${i} threshold`).toFixed(2),
      usd: chance.chooseScaled(MIN_USD['btc-lightning'], 4, `${i} usd`).toFixed(2),
    };
  });
}

function toAmount(usd: number): Amount {
  return String((BigInt(Math.round(usd * 1_000_000)) * USD) / 1_000_000n);
}
