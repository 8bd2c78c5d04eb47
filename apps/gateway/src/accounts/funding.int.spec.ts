/** An account that the operator funded and one that was funded over Lightning behave alike in every operation. */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Streams } from '#application';
import { verify } from '#audit';
import type { AccountCommand, CreditAdded } from '#domain';
import { formatUsd, money } from '#kernel';
import {
  type DocumentedOperation,
  listOperations,
  OperationCaller,
  sampleCases,
  sampleSize,
  TEST_CAUSE,
  type TestAccount,
  type TestResponse,
  TestWorld,
} from '#testing';

let world: TestWorld;
/** By id, at all of their paths. */
let operations: ReadonlyMap<string, readonly DocumentedOperation[]>;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
  operations = Map.groupBy(
    listOperations((await world.get('/openapi.json')).body),
    ({ operation: { operationId, 'x-alias-of': aliasOf = operationId } }) => aliasOf,
  );
});
afterAll(async () => {
  const lines: string[] = [];
  await verify(world.foundation, (line) => void lines.push(line));
  expect(lines.at(-1)).toBe('drift 0');
  await world.close();
});

// --- two accounts that differ in their funding ----------------------------------------------------------------------

interface KeySettings {
  readonly usage_limit_usd?: number;
  readonly reset_period?: string | null;
  readonly models?: readonly string[] | null;
}

class Twin {
  readonly caller: OperationCaller;
  private adjustments = 0;

  /** @param account with the secret of its key `main` */
  private constructor(
    readonly account: TestAccount,
    readonly keyId: string,
  ) {
    this.caller = new OperationCaller(world, account);
  }

  /** Replaces the key of an account by a new one. */
  static async create({ creditId }: TestAccount, settings: KeySettings): Promise<Twin> {
    const headers = { 'x-credit-id': creditId };
    const { body } = await world.send('POST', '/keys', { headers, body: { name: 'main', ...settings } });
    return new Twin({ creditId, apiKey: body.data.api_key }, body.data._id);
  }

  manage(method: string, route: string, body?: object): Promise<TestResponse> {
    return world.send(method, route, { headers: { 'x-credit-id': this.account.creditId }, body });
  }

  /** Credits or debits by the operator. @returns the balance afterwards, or why that is rejected */
  async adjust(usd: string, reverses?: string, adjustmentId = `adjustment-${this.adjustments++}`): Promise<string> {
    const actor = { name: 'Alice', isVerified: false };
    const adjustment = { adjustmentId, amount: money.parseUsd(usd), reason: 'Budget', actor };
    const data = { ...adjustment, ...(reverses === undefined ? {} : { reverses }), at: new Date().toISOString() };
    return this.run({ type: 'AdjustBalance', data }).catch((error: Error) => error.message);
  }

  /** Debits, and reverses the debit. */
  async adjustAndReverse(usd: string): Promise<readonly string[]> {
    const id = `adjustment-${this.adjustments}`;
    return [await this.adjust(`-${usd}`), await this.adjust(usd, id)];
  }

  /** @returns the balance afterwards */
  async run(command: AccountCommand): Promise<string> {
    const { accounts } = world.getService(Streams);
    const { state } = await accounts.run(world.getAccountId(this.account), command, TEST_CAUSE);
    return formatUsd(state.available);
  }

  async fetchFunds(): Promise<{ readonly balance: number; readonly held_usd: number }> {
    return (await this.manage('POST', '/credits/balance')).body;
  }
}

type Twins = readonly [paid: Twin, granted: Twin];

const PAID_USD = 20;
/** Id of the credit by the operator. */
const FUNDING = 'funding';

/**
 * Opens an account that is funded over Lightning and one that the operator funds. Debits both to a balance of `usd`.
 */
async function createTwins(usd: number, settings: KeySettings = {}): Promise<Twins> {
  const [paid, granted] = [await world.createPaidAccount(PAID_USD), await world.createAccount()];
  const balance = await world.fetchBalance(paid);
  const twins = [await Twin.create(paid, settings), await Twin.create(granted, settings)] as const;
  await twins[1].adjust(balance, undefined, FUNDING);
  if (usd < PAID_USD) for (const twin of twins) await twin.adjust((usd - PAID_USD).toFixed(12));
  return twins;
}

// --- comparison -----------------------------------------------------------------------------------------------------

/** Ids, secrets, hashes, invoices and signatures are longer than words. */
const ID = /[\w-]{20,}/g;
const TIME = /\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=[?&]exp=)\d+/g;
const MIN_UNIX_TIME = 1_700_000_000;
/** Headers that depend on sizes, the time or the connection. */
const VARIABLE_HEADERS = new Set(['content-length', 'date', 'etag', 'keep-alive', 'connection', 'transfer-encoding']);

/** Returns what a client receives, with the same text in place of all ids and times. Pages contain images of ids. */
function normalize({ status, headers, body, events, text }: TestResponse): unknown {
  const isPage = headers.get('content-type')?.startsWith('text/html');
  const content = body ?? (events.length > 0 ? events : text);
  const comparable = {
    status,
    headers: [...headers].filter(([name]) => !VARIABLE_HEADERS.has(name)),
    content: isPage || headers.has('ehbp-response-nonce') ? '' : content,
  };
  const json = JSON.stringify(comparable, (_, value) => {
    if (typeof value === 'string') return value.replace(TIME, 'TIME').replace(ID, 'ID');
    return typeof value === 'number' && value > MIN_UNIX_TIME ? 'TIME' : value;
  });
  return JSON.parse(json);
}

class Step {
  /** @param isRead whether the outcome can lag the events: both accounts then get the same one after a while */
  constructor(
    readonly name: string,
    readonly run: (twin: Twin) => Promise<unknown>,
    readonly isRead = false,
  ) {}

  /** The names are in the report of a sequence that fails. */
  [fc.toStringMethod](): string {
    return this.name;
  }
}

/** @returns the outcome, which is the same for both accounts */
async function expectAlike({ name, run, isRead }: Step, twins: Twins): Promise<unknown> {
  let outcomes: readonly unknown[] = [];
  const areEqual = async () => {
    outcomes = await Promise.all(twins.map(run));
    return isDeepStrictEqual(outcomes[0], outcomes[1]);
  };
  if (isRead) await world.waitUntil(areEqual).catch(() => {});
  else await areEqual();
  expect([name, outcomes[1]]).toEqual([name, outcomes[0]]);
  return outcomes[0];
}

/** Takes the step, waits until nothing is held, and expects equal balances. */
async function takeStep(step: Step, twins: Twins): Promise<void> {
  await expectAlike(step, twins);
  let funds: Awaited<ReturnType<Twin['fetchFunds']>>[] = [];
  await world.waitUntil(async () => {
    funds = await Promise.all(twins.map((twin) => twin.fetchFunds()));
    return funds.every(({ held_usd }) => held_usd === 0);
  });
  expect([step.name, funds[1]]).toEqual([step.name, funds[0]]);
}

// --- steps ----------------------------------------------------------------------------------------------------------

/**
 * Webhooks, proofs of payment and the state of the process do not depend on an account. The response to a connected
 * wallet depends on when an automatic top-up starts: its own step compares only the status.
 */
const EXCLUDED = new Set(['receivePaymentHook', 'receiveVideoHook', 'getCharge', 'isReady', 'connectAutoTopupWallet']);

/**
 * Sends the example of an operation to one of its paths, with one of its credentials, and sometimes again as a retry.
 */
function generateStep(id: string): fc.Arbitrary<Step> {
  const places = operations.get(id) as readonly DocumentedOperation[];
  const [{ operation, method }] = places as [DocumentedOperation];
  const accepted = operation.security.flatMap((scheme) => Object.keys(scheme));
  const schemes = accepted.length > 0 ? accepted.filter((scheme) => scheme !== 'payment') : ['none'];
  const isRetryable = operation.parameters.some(({ name }) => name === 'idempotency-key');
  const isRead = method === 'GET' || id === 'getBalance';
  return fc
    .tuple(fc.constantFrom(...places), fc.constantFrom(...schemes), isRetryable ? fc.boolean() : fc.constant(false))
    .map(([place, scheme, isRetried]) => {
      const send = async ({ caller }: Twin) => {
        const headers = {
          ...(scheme === 'none' ? {} : caller.createCredential(scheme)),
          ...(isRetried ? { 'idempotency-key': `for ${id}` } : {}),
        };
        const example = await caller.createExample(place);
        const responses = [await caller.send(place, headers, example)];
        if (isRetried) responses.push(await caller.send(place, headers, example));
        return responses.map(normalize);
      };
      return new Step(`${place.method} ${place.path} with ${scheme}${isRetried ? ', retried' : ''}`, send, isRead);
    });
}

/** Costs 0.01 USD per request of any length. */
const FLAT = { model: 'countinghouse/flat' };
const FREE = { model: 'openai/gpt-oss-20b:free' };
/** Two stored responses with it exceed the storage quota of an account that was never credited. */
const LARGE_INPUT = 'counted '.repeat(80_000);

const sendChat = (name: string, directive: string, fields: object = {}): Step =>
  new Step(name, async ({ account }) => normalize(await world.sendChat(account, directive, fields)));

const updateKey = (name: string, changes: object): Step =>
  new Step(name, async (twin) => normalize(await twin.manage('PATCH', `/keys/${twin.keyId}`, changes)));

const connectWallet = (mode: string): Step =>
  new Step(`a wallet: ${mode}`, async ({ account }) => {
    return (await world.connectWallet(account, await world.createNwcWallet({ mode }))).status;
  });

const STEPS: readonly Step[] = [
  ...Array.from({ length: 3 }, () => sendChat('a request', '', FLAT)),
  sendChat('a streamed request', 'tokens=8', { ...FLAT, stream: true }),
  sendChat('an interrupted stream', 'tokens=8 fault=cut', { stream: true }),
  sendChat('a rejection by the provider', 'fault=400'),
  sendChat('a free request', 'tokens=8', FREE),
  sendChat('a request for many tokens', 'tokens=8', { max_tokens: 60_000 }),
  updateKey('a low limit of the key', { usage_limit_usd: 0.02 }),
  updateKey('no limit of the key', { usage_limit_usd: null, reset_period: null }),
  updateKey('a block of the key', { blocked: true }),
  updateKey('no block of the key', { blocked: false }),
  connectWallet('quota'), // does not pay: when a payment is credited would affect later steps
  new Step('a debit', (twin) => twin.adjust('-0.013')),
  new Step('a large debit', (twin) => twin.adjust('-0.3')),
  new Step('a credit', (twin) => twin.adjust('0.007')),
  new Step('a debit that is reversed', (twin) => twin.adjustAndReverse('0.01')),
];

const keySettings: fc.Arbitrary<KeySettings> = fc.oneof(
  fc.constant({}),
  fc.record({
    usage_limit_usd: fc.constantFrom(0.03, 5),
    reset_period: fc.constantFrom(null, 'daily', 'monthly'),
    models: fc.constantFrom(null, null, ['openai/*', 'countinghouse/flat']),
  }),
);

/**
 * Generates all steps in a random order. Unless all cases are tested, the sequences with the indexes 0 to 2 together have
 * the step of each operation.
 */
function generateSequence(index: number): fc.Arbitrary<readonly Step[]> {
  const allIds = [...operations.keys()].filter((id) => !EXCLUDED.has(id));
  expect(allIds.length).toBeGreaterThan(40);
  const ids = sampleCases(allIds, Math.ceil(allIds.length / 3), index);
  return fc.tuple(...ids.map(generateStep)).chain((steps) => {
    const allSteps = [...steps, ...STEPS];
    return fc.shuffledSubarray(allSteps, { minLength: allSteps.length });
  });
}

/** Steps without money. Uploads are rejected earlier if an account was never credited. */
const generateLastSteps = () => fc.tuple(...['createEmbeddings', 'editImage', 'createTranscription'].map(generateStep));

const STATE: readonly Step[] = ['/keys?include_disabled=true', '/queries/history?page_count=100'].map(
  (route) => new Step(route, async (twin) => normalize(await twin.manage('GET', route)), true),
);

describe('an account that the operator funded behaves like one that was funded over Lightning', () => {
  test.each([
    [0.05, 0],
    [0.6, 1],
    [PAID_USD, 2],
  ])('in all operations in any order, with %d USD', async (usd, index) => {
    await fc.assert(
      fc.asyncProperty(
        generateSequence(index),
        keySettings,
        generateLastSteps(),
        async (steps, settings, lastSteps) => {
          const twins = await createTwins(usd, settings);
          for (const step of [...steps, ...STATE]) await takeStep(step, twins);
          const { balance } = await twins[0].fetchFunds();
          if (balance > 0)
            expect(await expectAlike(new Step('the rest', (twin) => twin.adjust(`-${balance}`)), twins)).toBe('0');
          for (const step of lastSteps) await takeStep(step, twins);
        },
      ),
      { numRuns: 1, seed: index + 1, endOnFailure: true },
    );
  });

  test('when it stores more than the quota of an account that was never credited', async () => {
    const twins = await createTwins(1);
    const request = { model: 'openai/gpt-5-mini', input: LARGE_INPUT };
    const store = new Step('a large response', async ({ account }) =>
      normalize(await world.post('/v1/responses', request, account)),
    );
    for (let i = 0; i < 3; i++) expect(await expectAlike(store, twins)).toMatchObject({ status: 200 });
  });

  test('when its funding was reversed completely', async () => {
    const [paid, granted] = await createTwins(PAID_USD);
    const events = await world.listEvents(paid.account);
    const { amount, bonus, ...added } = (events.find(({ type }) => type === 'CreditAdded') as CreditAdded).data;
    const [amountBack, bonusBack] = [amount, bonus].map((text) => money.negate(money.parseJsonAmount(text)));
    const data = { ...added, reversalId: 'all', amount: amountBack, bonus: bonusBack, why: 'Refunded' };
    expect(await paid.run({ type: 'ReverseCredit', data } as AccountCommand)).toBe('0');
    const { balance } = await granted.fetchFunds();
    expect(await granted.adjust(`-${balance}`, FUNDING)).toBe('0');
    await fc.assert(
      fc.asyncProperty(generateLastSteps(), async (steps) => {
        for (const step of steps) await takeStep(step, [paid, granted]);
      }),
      { numRuns: sampleSize(3, 1), seed: 4, endOnFailure: true },
    );
  });

  test('when a wallet tops it up', async () => {
    const twins = await createTwins(1);
    expect(await expectAlike(connectWallet('pays'), twins)).toBe(200);
    for (const twin of twins) await world.waitUntil(async () => (await twin.fetchFunds()).balance > 10);
    await takeStep(sendChat('a request', '', FLAT), twins);
  });
});
