/**
 * A process that runs video jobs dies before or after each of its actions in turn, and another one continues. Runs in
 * memory and in virtual time. `npm run prove:jobs` does the same with processes, a fake provider and real files.
 */

import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  createStreams,
  type Download,
  DownloadError,
  Downloader,
  type FileName,
  FileStore,
  type FileToStore,
  HoldCommandRouter,
  ProviderRegistry,
  Secrets,
  type SubmittedVideo,
  UpstreamError,
  type VideoOrder,
  type VideoProvider,
  VideoRequestStore,
  VideoResults,
  type VideoStatus,
  VideoWebhooks,
} from '#application';
import { Auditor } from '#audit';
import { detectMediaType } from '#connectors';
import {
  type DomainEvent,
  EVENT_SCHEMA,
  type HoldLimits,
  type SubmissionResult,
  UNRESTRICTED_ACCESS,
  type VideoEvent,
} from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  type CheckpointStore,
  createRootCause,
  type EventStore,
  formatUsd,
  money,
  NO_SNAPSHOTS,
  parseUsd,
  type Runtime,
  START_POSITION,
  type StoredEvent,
  withUpcasting,
} from '#kernel';
import { runVideoWorkflow } from '#sagas';
import { createTestRuntime } from '#testing';
import { createVideo } from '../../../apps/sandbox/src/media/files/videos.ts';
import { FakeClock, followClock } from '../../testing/src/fake-clock.ts';
import { sampleCases } from '../../testing/src/sample-cases.ts';
import { createIssuedChallenge } from '../../testing/src/scenarios/issued-challenge.ts';
import { MemoryWorkflowSchedule } from '../../testing/src/simulation/memory-workflow-schedule.ts';

const SECOND = 1_000;
const ACCOUNT = '3f0e6c1e-7d51-4b0a-9a55-0c6f2a1c9e11';
const DEADLINE_S = 60;
const CHALLENGE = '10000000-0000-4000-8000-000000000001';
const COST = '3.2';
const PRICE = parseUsd('3.68');
const FILM = createVideo({ seed: 'A harbour', seconds: 1, width: 16, height: 16 });
const cause = createRootCause('test', 'test');

/** Thrown by every action of a process that has died. */
class Died extends Error {}

type Act = <T>(what: string, work: () => Promise<T>) => Promise<T>;
const alive: Act = (_, work) => work();

// external systems ----------------------------------------------------------------------------------------------------

interface Behaviour {
  /** Called for the `nth` submission; throws the error response. If that has no status, the job is accepted anyway. */
  submit?(nth: number): void;
  /** Whether the provider accepts the job although it returns an error. */
  readonly takes?: boolean;
  look?(age: number): VideoStatus | undefined;
  /** Seconds until the video is generated and billed; 3 by default. */
  readonly made?: number;
  file?(nth: number): Buffer | DownloadError;
  /** Seconds from the submission to each webhook call. */
  readonly calls?: readonly number[];
}

const refusal = (status: number) => {
  const code = status === 429 ? 'rate_limited' : 'invalid_request';
  return new UpstreamError(code, 'Rejected by the fake provider', { status });
};
const lostAnswer = () => {
  throw new UpstreamError('upstream_error', 'The provider interrupted the response');
};
const inDoubt: Behaviour = { submit: lostAnswer };

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'generates the video': {},
  'is rate-limited at first': {
    submit: (nth) => {
      if (nth === 1) throw refusal(429);
    },
  },
  'rejects the job': {
    submit: () => {
      throw refusal(422);
    },
  },
  'loses its response': inDoubt,
  'loses its response, but calls the webhook': { ...inDoubt, calls: [4, 5, 12, 12] },
  'calls the webhook repeatedly, also before its response': { calls: [0, 6, 6] },
  'fails without a charge': { look: () => failed('no'), made: Number.POSITIVE_INFINITY },
  'fails and invoices': { look: (age) => (age < 5 ? { state: 'pending' } : failed('yes')) },
  'fails and may invoice': { look: (age) => (age < 5 ? { state: 'pending' } : failed('perhaps')) },
  'never finishes, but invoices': { look: () => ({ state: 'pending' }) },
  'has lost the file': { file: () => new DownloadError('The file does not exist', 'not_found') },
  'returns a text': { file: () => Buffer.from('Good evening') },
  'loses the connection': {
    file: (nth) => (nth < 4 ? new DownloadError('The download was interrupted', 'failed') : FILM),
  },
  'is unavailable for a while': {
    look: (age) => {
      if (age < 20) throw new UpstreamError('upstream_unavailable', 'The provider is unavailable');
      return undefined;
    },
  },
};

function failed(invoiced: 'no' | 'yes' | 'perhaps'): VideoStatus {
  return { state: 'failed', code: 'content_policy_violation', message: 'The video was rejected', invoiced };
}

interface Order {
  readonly id: string;
  readonly at: number;
  readonly hook: string | undefined;
  billed: boolean;
}

/** A fake provider. It works on every job that it has accepted, even if its response was lost. */
class Vendor {
  readonly orders: Order[] = [];
  submissions = 0;
  fetches = 0;

  get bill() {
    this.work();
    return money.sum(this.orders.filter(({ billed }) => billed).map(() => parseUsd(COST)));
  }

  maker(act: Act): VideoProvider {
    return {
      submit: (order) => act('submit', async () => this.submit(order)),
      getStatus: (reference) => act('look', async () => this.look(reference)),
      parseWebhook: async () => undefined,
    };
  }

  private submit({ webhookUrl }: VideoOrder): SubmittedVideo {
    this.submissions++;
    const refused = caught(() => behaviour.submit?.(this.submissions));
    if (refused instanceof UpstreamError && refused.status !== undefined) throw refused;
    const order: Order = { id: randomUUID(), at: time.nowMs(), hook: webhookUrl, billed: false };
    this.orders.push(order);
    for (const seconds of behaviour.calls ?? []) void call(order, seconds * SECOND);
    if (refused) throw refused;
    return { reference: order.id, vendorId: order.id };
  }

  private look(reference: string): VideoStatus {
    this.work();
    const order = this.orders.find(({ id }) => id === reference);
    if (!order) throw refusal(404);
    const said = behaviour.look?.((time.nowMs() - order.at) / SECOND);
    if (said) return said;
    if (!order.billed) return { state: 'pending' };
    return { state: 'made', usage: undefined, vendorId: order.id, file: { kind: 'address', url: order.id } };
  }

  private work(): void {
    for (const order of this.orders) if (time.nowMs() - order.at >= (behaviour.made ?? 3) * SECOND) order.billed = true;
  }
}

function caught(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Handles a webhook call as a gateway does. */
async function call({ id, hook }: Order, milliseconds: number): Promise<void> {
  await time.delay(milliseconds);
  const named = hooks.verifyToken('fal', hook?.split('/').at(-1) ?? '');
  if (!named) throw new Error('the webhook URL names no video job');
  const answer: SubmissionResult = { isAccepted: true, reference: id, vendorId: id, hooked: true };
  const data = { submission: named.submission, outcome: { isKnown: true, result: answer } as const, at: time.now() };
  await createStreams(store, NO_SNAPSHOTS, runtime).videos.run(named.jobId, { type: 'EndSubmission', data }, cause);
  await due.wake('videos', [named.jobId], time.now());
}

class Files extends FileStore {
  readonly kept = new Map<string, { readonly mediaType: string; readonly bytes: Buffer }>();

  constructor(
    private readonly act: Act,
    private readonly shared: Files | undefined = undefined,
  ) {
    super();
  }

  save({ id, n, mediaType, bytes }: FileToStore): Promise<number> {
    return this.act('save', async () => {
      const pieces: Uint8Array[] = [];
      if (bytes instanceof Uint8Array) pieces.push(bytes);
      else for await (const piece of bytes) pieces.push(piece);
      const whole = Buffer.concat(pieces);
      (this.shared ?? this).kept.set(`${id}/${n}`, { mediaType, bytes: whole });
      return whole.length;
    });
  }

  find({ id, n }: FileName) {
    return this.act('find', async () => {
      const found = (this.shared ?? this).kept.get(`${id}/${n}`);
      if (!found) return undefined;
      const { mediaType, bytes } = found;
      return { mediaType, size: bytes.length, read: () => pieces(bytes) };
    });
  }

  async remove(): Promise<void> {}
  async removeExpired(): Promise<number> {
    return 0;
  }
  async close(): Promise<void> {}
}

async function* pieces(bytes: Buffer) {
  yield bytes;
}

class Net extends Downloader {
  constructor(private readonly act: Act) {
    super();
  }

  fetchCustomerUrl(): never {
    throw new Error('this test fetches no customer URLs');
  }

  fetchProviderFile(): Promise<Download> {
    return this.act('download', async () => {
      const file = behaviour.file?.(++vendor.fetches) ?? FILM;
      if (file instanceof DownloadError) throw file;
      return { bytes: pieces(file), declaredType: undefined, declaredSize: undefined };
    });
  }
}

// processes -----------------------------------------------------------------------------------------------------------

let time: FakeClock;
let store: EventStore;
/** Types of all events appended so far. */
let appended: string[];
let due: MemoryWorkflowSchedule;
let positions: Map<string, bigint>;
let files: Files;
let vendor: Vendor;
let behaviour: Behaviour;
let stops: AbortController[];
let parts: Promise<void>[];
let token: number;

const secrets = new Secrets(createTestRuntime(), Buffer.alloc(32, 7));
const hooks = new VideoWebhooks('https://gateway.example', secrets);
const runtime: Runtime = createTestRuntime({ ...followClock(() => time), chance: () => 0, reportError: () => {} });

beforeEach(() => start());
afterEach(() => stopAll());

function start(): void {
  time = new FakeClock('2026-11-20T12:00:00.000Z');
  const facts = withUpcasting(new MemoryEventStore(), EVENT_SCHEMA);
  appended = [];
  const append: EventStore['append'] = (stream, expected, events) => {
    appended.push(...events.map(({ type }) => type));
    return facts.append(stream, expected, events);
  };
  store = Object.create(facts, { append: { value: append } });
  [due, positions, files] = [new MemoryWorkflowSchedule(), new Map(), new Files(alive)];
  [vendor, behaviour, stops, parts, token] = [new Vendor(), {}, [], [], 0];
}

async function stopAll(): Promise<void> {
  for (const stop of stops) stop.abort();
  await Promise.allSettled(parts);
}

function checkpointsOf(act: Act): CheckpointStore {
  return {
    load: async (reader) => positions.get(reader) ?? START_POSITION,
    save: (reader, position) => act('save', async () => void positions.set(reader, position)),
  };
}

/** Runs the workflow in a process whose actions go through `act`, until `act` throws `Died`. */
function work(act: Act = alive): void {
  const stop = new AbortController();
  stops.push(stop);
  let dead = false;
  const doing: Act = async (what, work) => {
    if (dead) throw new Died();
    try {
      return await act(what, work);
    } catch (error) {
      if (error instanceof Died) {
        dead = true;
        stop.abort();
      }
      throw error;
    }
  };
  const appending: EventStore = Object.create(store, {
    append: { value: (...args: Parameters<EventStore['append']>) => doing('append', () => store.append(...args)) },
  });
  const own = new Files(doing, files);
  const maker = vendor.maker(doing);
  const providers: ProviderRegistry = Object.create(ProviderRegistry.prototype, { get: { value: () => maker } });
  const streams = createStreams(appending, NO_SNAPSHOTS, runtime);
  const running = runVideoWorkflow(
    {
      eventReader: store,
      streams,
      providers,
      webhooks: hooks,
      payers: new HoldCommandRouter(streams),
      requests: new VideoRequestStore(own, secrets, runtime),
      results: new VideoResults(own, new Net(doing), detectMediaType),
      pollsPerSecond: 100,
      schedule: {
        findDue: (...args) => due.findDue(...args),
        listWaiting: (name) => due.listWaiting(name),
        wake: (...args) => doing('wake', () => due.wake(...args)),
        reschedule: (...args) => doing('reschedule', () => due.reschedule(...args)),
      },
      checkpoints: checkpointsOf(doing),
      clock: time,
      runtime,
    },
    { token: ++token, signal: stop.signal, isHeld: () => !stop.signal.aborted },
  );
  parts.push(...running.map((part) => part.catch(() => {})));
}

const query = { model: 'google/veo-3', type: 'video_generation', source: 'api', online: false, free: false } as const;
const prices = [
  { unit: 'videoSecond', per: 1, cost: parseUsd('0.4').toString(), price: parseUsd('0.46').toString() },
] as const;
const endpoint = { of: query.model, provider: 'fal', creditor: 'fal', model: 'fal-ai/veo3', usage: { videoSecond: 8 } };

type Wish = Omit<HoldLimits, 'keyId' | 'partialHold'> & { readonly at: string };

/** Places a hold on a new account with 10 USD. */
async function holdOfAccount(terms: Wish): Promise<string> {
  const { at } = terms;
  const { accounts } = createStreams(store, NO_SNAPSHOTS, runtime);
  const key = { keyId: 'k', name: 'k', hash: 'h', secret: { key: '', box: '' }, ...UNRESTRICTED_ACCESS };
  const free = { limit: null, resetPeriod: null, expireAt: null };
  const run = (command: Parameters<typeof accounts.run>[1]) => accounts.run(ACCOUNT, command, cause);
  await run({ type: 'OpenAccount', data: { key: { ...key, ...free }, at } });
  const credit = { creditId: 'c', method: 'card', amount: parseUsd('10'), bonus: parseUsd('0') };
  await run({ type: 'AddCredit', data: { ...credit, at } });
  await run({ type: 'HoldFunds', data: { ...terms, keyId: null } });
  return `account-${ACCOUNT}`;
}

/** Places a hold on a challenge by presenting its proof. */
async function holdOfChallenge(terms: Wish): Promise<string> {
  const { challenges } = createStreams(store, NO_SNAPSHOTS, runtime);
  const usable = { priceList: 'p', query, expiresAt: terms.expiresAt, usableUntil: terms.expiresAt, at: terms.at };
  const data = createIssuedChallenge(usable, terms.maxAmount);
  await challenges.run(CHALLENGE, { type: 'IssueChallenge', data }, cause);
  await challenges.run(CHALLENGE, { type: 'ClaimChallenge', data: { ...terms, request: data.request } }, cause);
  return `challenge-${CHALLENGE}`;
}

/** Requests a video for a payer as a gateway does. */
async function request(holdId: string = randomUUID(), held = holdOfAccount): Promise<string> {
  const jobId = `gen_${randomUUID().replaceAll('-', '')}`;
  const { videos, priceLists } = createStreams(store, NO_SNAPSHOTS, runtime);
  const at = time.now();
  const lines = [{ of: endpoint.of, provider: 'fal', creditor: 'fal', prices }];
  await priceLists.run('p', { type: 'PublishPriceList', data: { version: 'p', lines, at } }, cause);
  const amounts = { minAmount: PRICE, maxAmount: PRICE };
  const payer = await held({
    holdId,
    ...amounts,
    owner: 'gateway-1',
    query,
    expiresAt: time.fromNow(600 * SECOND),
    at,
  });
  const kept = await new VideoRequestStore(files, secrets, runtime).save(
    { prompt: 'A harbour', image: undefined, orders: [{ parameters: { duration: '8' }, wire: {} }] },
    time.nowMs(),
  );
  const hold = { holdId, payer, amount: PRICE.toString() };
  const accountId = payer.slice(payer.indexOf('-') + 1);
  const about = { accountId, keyId: null, query, hold, endpoints: [{ ...endpoint, prices }], terms: {} };
  const deadline = time.fromNow(DEADLINE_S * SECOND);
  const data = { ...about, priceList: 'p', request: kept, result: 'gen_result', deadline, at };
  await videos.run(jobId, { type: 'RequestVideo', data }, cause);
  return jobId;
}

async function facts(): Promise<readonly StoredEvent<DomainEvent>[]> {
  const all: StoredEvent<DomainEvent>[] = [];
  for await (const { events } of store.readAll(START_POSITION)) all.push(...(events as typeof all));
  return all;
}

async function journal(): Promise<readonly StoredEvent<VideoEvent>[]> {
  return (await facts()).filter(({ stream }) => stream.startsWith('video-')) as never;
}

async function hasEnded(): Promise<boolean> {
  return (await journal()).some(({ type }) => type === 'VideoSettled' || type === 'VideoReleased');
}

const pass = (seconds: number) => time.advance(seconds * SECOND);

/** Waits until the job has ended, for at most 300 seconds of virtual time. */
async function untilEnded(): Promise<void> {
  for (let i = 0; i < 30; i++) {
    if (await hasEnded()) return;
    await pass(10);
  }
}

/** Summarises what became of the money, and what the auditor reports. */
async function books() {
  const all = await facts();
  const { accounts, challenges } = createStreams(store, NO_SNAPSHOTS, runtime);
  const { available, held } = await accounts.read(ACCOUNT);
  const { available: left, holds } = await challenges.read(CHALLENGE);
  const costs = all.flatMap(({ type, data }) =>
    type === 'HoldSettled' || type === 'ChargeAbsorbed' ? [money.parseJsonAmount(data.charge.cost)] : [],
  );
  const open = all.flatMap(({ type, data }) => (type === 'VideoFailed' && data.open ? [data.open] : []));
  const differences: string[] = [];
  const auditor = new Auditor((difference) => void differences.push(difference));
  for (const fact of all) auditor.auditEvent(fact, fact);
  return {
    balance: formatUsd(money.add(available, left)),
    held: held + BigInt(holds.size),
    open,
    differences,
    ends: all.filter(isEnd).length,
    unexplained: vendor.bill - money.sum(costs),
  };
}

const isEnd = ({ type }: DomainEvent) => type === 'HoldSettled' || type === 'HoldReleased' || type === 'HoldExpired';
/**
 * Runs a process that dies at its `n`th action: before the action, or after it so that its result is lost.
 * @returns whether it died before the job had ended
 */
async function dieAt(n: number, behind: boolean): Promise<boolean> {
  let actions = 0;
  let died = false;
  work(async (_, act) => {
    if (++actions < n) return act();
    died = true;
    if (behind) await act();
    throw new Died();
  });
  for (let i = 0; i < 12 && !died && !(await hasEnded()); i++) await pass(10);
  return died && !(await hasEnded());
}

const BY_ACCOUNT = Object.keys(BEHAVIOURS).map((vendorThat) => ['an account', vendorThat] as const);
const BY_CHALLENGE = ['generates the video', 'rejects the job', 'loses its response', 'fails and invoices'].map(
  (vendorThat) => ['a challenge', vendorThat] as const,
);

describe.each(sampleCases([...BY_CHALLENGE, ...BY_ACCOUNT], 3))(
  'paid by %s, with a provider that %s',
  (payer, vendorThat) => {
    const [held, paidFor, unpaid] =
      payer === 'an account' ? ([holdOfAccount, '6.32', '10'] as const) : ([holdOfChallenge, '0', '3.68'] as const);
    test.each(['before', 'after'])(
      'a job ends, is charged at most once and has no unrecorded cost but an open one if a process dies %s any action',
      async (where) => {
        for (let n = 1, open = true; open; n++) {
          start();
          behaviour = BEHAVIOURS[vendorThat] as Behaviour;
          await request(randomUUID(), held);
          open = await dieAt(n, where === 'after');
          work();
          await untilEnded();
          const { balance, held: stillHeld, ends, differences, open: items, unexplained } = await books();
          expect({ n, held: stillHeld, ends, differences }).toEqual({ n, held: 0n, ends: 1, differences: [] });
          const paid = (await journal()).some(({ type }) => type === 'VideoSettled');
          expect(balance).toBe(paid ? paidFor : unpaid);
          expect(vendor.orders.length).toBeLessThanOrEqual(1);
          // Only a job with an open cost may have an unrecorded cost, and only if the provider billed it.
          if (items.length === 0) expect({ n, unexplained }).toEqual({ n, unexplained: 0n });
          else expect([0n, parseUsd(COST)]).toContain(unexplained);
          expect(items.length).toBeLessThanOrEqual(1);
          if (paid) expect(files.kept.get('gen_result/0')?.mediaType).toBe('video/mp4');
          await stopAll();
          expect(open || n > 6).toBe(true);
        }
      },
    );
  },
);

describe('in a process that does not die', () => {
  test.each<[string, string, string, number]>([
    ['generates the video', 'VideoSettled', '6.32', 0],
    ['is rate-limited at first', 'VideoSettled', '6.32', 0],
    ['rejects the job', 'VideoReleased', '10', 0],
    ['loses its response', 'VideoReleased', '10', 1],
    ['loses its response, but calls the webhook', 'VideoSettled', '6.32', 0],
    ['calls the webhook repeatedly, also before its response', 'VideoSettled', '6.32', 0],
    ['fails without a charge', 'VideoReleased', '10', 0],
    ['fails and invoices', 'VideoReleased', '10', 0],
    ['fails and may invoice', 'VideoReleased', '10', 1],
    ['never finishes, but invoices', 'VideoReleased', '10', 1],
    ['has lost the file', 'VideoReleased', '10', 0],
    ['returns a text', 'VideoReleased', '10', 0],
    ['loses the connection', 'VideoSettled', '6.32', 0],
    ['is unavailable for a while', 'VideoSettled', '6.32', 0],
  ])('a provider that %s leads to %s, a balance of %s and %d open costs', async (vendorThat, last, balance, open) => {
    behaviour = BEHAVIOURS[vendorThat] as Behaviour;
    await request();
    work();
    await untilEnded();
    expect((await journal()).at(-1)?.type).toBe(last);
    const after = await books();
    expect({ balance: after.balance, open: after.open.length }).toEqual({ balance, open });
    expect(after.unexplained).toBe(open === 0 ? 0n : parseUsd(COST));
  });

  test('a job that is polled for 50 s appends seven events', async () => {
    behaviour = { made: 50 };
    await request();
    work();
    await untilEnded();
    expect((await journal()).map(({ type }) => type)).toEqual([
      'VideoRequested',
      'VideoHeld',
      'VideoSubmissionBegun',
      'VideoSubmitted',
      'VideoMade',
      'VideoStored',
      'VideoSettled',
    ]);
  });

  test('a job is not submitted if its hold ends before it is transferred', async () => {
    await request();
    const { accounts } = createStreams(store, NO_SNAPSHOTS, runtime);
    await accounts.run(
      ACCOUNT,
      { type: 'AbandonHolds', data: { owner: 'gateway-1', before: time.fromNow(1), at: time.now() } },
      cause,
    );
    work();
    await untilEnded();
    expect(vendor.submissions).toBe(0);
    expect((await journal()).find(({ type }) => type === 'VideoFailed')?.data).toMatchObject({
      errorCode: 'hold_ended',
    });
    expect((await books()).differences).toEqual([]);
  });

  test('a job is not submitted if its stored request is lost', async () => {
    await request();
    files.kept.clear();
    work();
    await untilEnded();
    expect(vendor.submissions).toBe(0);
    expect((await books()).balance).toBe('10');
  });
});

test('a job is submitted once if two processes assume that they hold the lease', async () => {
  for (let n = 0; n < 20; n++) {
    start();
    await request();
    let actions = 0;
    const slow: Act = async (_, act) => {
      if (++actions === n) await time.delay(7 * SECOND);
      return act();
    };
    work(slow);
    await pass(1);
    work();
    await untilEnded();
    const { balance, ends, differences, unexplained } = await books();
    expect({ n, balance, ends, differences, unexplained }).toEqual({
      n,
      balance: '6.32',
      ends: 1,
      differences: [],
      unexplained: 0n,
    });
    expect(vendor.submissions).toBe(1);
    await stopAll();
  }
});

test('a hold ends once, even if the account no longer has it in its state', async () => {
  for (const vendorThat of ['generates the video', 'fails and invoices']) {
    start();
    behaviour = BEHAVIOURS[vendorThat] as Behaviour;
    await request('the hold');
    // The process dies after the hold has ended on the account's stream, before the job records it.
    let ended = false;
    work(async (_, act) => {
      if (ended) throw new Died();
      const answer = await act();
      ended ||= appended.some((type) => isEnd({ type } as DomainEvent));
      return answer;
    });
    await pass(50);
    const { accounts } = createStreams(store, NO_SNAPSHOTS, runtime);
    for (let i = 0; i < 1_100; i++) {
      const hold = { holdId: `h${i}`, keyId: null, minAmount: parseUsd('1'), maxAmount: parseUsd('1'), query };
      const at = time.now();
      const terms = { ...hold, expiresAt: time.fromNow(SECOND), at };
      await accounts.run(ACCOUNT, { type: 'HoldFunds', data: terms }, cause);
      const why = { errorCode: 'timeout', reason: 'so', attempts: [] };
      await accounts.run(ACCOUNT, { type: 'ReleaseHold', data: { holdId: `h${i}`, ...why, at } }, cause);
    }
    const before = await books();
    expect(before.ends).toBe(1_101);
    work();
    await untilEnded();
    expect(await hasEnded()).toBe(true);
    expect(await books()).toEqual(before);
    const charged = (await journal()).flatMap(({ type, data }) => (type === 'VideoSettled' ? [data.charged] : []));
    expect(charged).toEqual(vendorThat === 'generates the video' ? [parseUsd('3.68').toString()] : []);
    await stopAll();
  }
});
