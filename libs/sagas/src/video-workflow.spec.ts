/**
 * A process that has videos made dies at every single thing that it does, before it or behind it, and another one goes on. In
 * memory and in virtual time; with processes, a vendor of its own and real files it is `npm run prove:jobs`.
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
import { detectMediaType } from '#connectors';
import { type DomainEvent, EVENT_SCHEMA, type HoldLimits, type SubmissionResult, type VideoEvent } from '#domain';
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
import { Auditor } from '../../../apps/ledger/src/audit/auditor.ts';
import { createVideo } from '../../../apps/sandbox/src/media/files/videos.ts';
import { FakeClock } from '../../testing/src/fake-clock.ts';
import { createIssuedChallenge } from '../../testing/src/scenarios/issued-challenge.ts';
import { MemoryWorkflowSchedule } from '../../testing/src/scenarios/memory-workflow-schedule.ts';

const SECOND = 1_000;
const ACCOUNT = '3f0e6c1e-7d51-4b0a-9a55-0c6f2a1c9e11';
const DEADLINE_S = 60;
const CHALLENGE = '10000000-0000-4000-8000-000000000001';
const COST = '3.2';
const PRICE = parseUsd('3.68');
const FILM = createVideo({ seed: 'A harbour', seconds: 1, width: 16, height: 16 });
const cause = createRootCause('test', 'test');

/** Thrown by whatever a process does after it has died. */
class Died extends Error {}

type Act = <T>(what: string, work: () => Promise<T>) => Promise<T>;
const alive: Act = (_, work) => work();

// the world outside ---------------------------------------------------------------------------------------------------

interface Behaviour {
  /** What it says to the nth submission, which it has noted; throws what it refuses. */
  submit?(nth: number): void;
  /** Whether it takes it, of which it says nothing where it refuses. */
  readonly takes?: boolean;
  look?(age: number): VideoStatus | undefined;
  /** Seconds until it is made and billed; undefined: never. */
  readonly made?: number;
  file?(nth: number): Buffer | DownloadError;
  /** Seconds until it calls, each time with what it has taken. */
  readonly calls?: readonly number[];
}

const refusal = (status: number) => {
  const code = status === 429 ? 'rate_limited' : 'invalid_request';
  return new UpstreamError(code, 'As it was told', { status });
};
const lostAnswer = () => {
  throw new UpstreamError('upstream_error', 'The upstream broke off the answer');
};
const inDoubt: Behaviour = { submit: lostAnswer };

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  'makes it': {},
  'is busy at first': {
    submit: (nth) => {
      if (nth === 1) throw refusal(429);
    },
  },
  'refuses it': {
    submit: () => {
      throw refusal(422);
    },
  },
  'loses its answer': inDoubt,
  'loses its answer, and calls': { ...inDoubt, calls: [4, 5, 12, 12] },
  'calls twice, also before it has answered': { calls: [0, 6, 6] },
  'fails for nothing': { look: () => failed('no'), made: Number.POSITIVE_INFINITY },
  'fails, and sends its invoice': { look: (age) => (age < 5 ? { state: 'pending' } : failed('yes')) },
  'fails, and says nothing of an invoice': { look: (age) => (age < 5 ? { state: 'pending' } : failed('perhaps')) },
  'never ends, and sends its invoice': { look: () => ({ state: 'pending' }) },
  'has lost the file': { file: () => new DownloadError('It is gone', 'not_found') },
  'has made a text': { file: () => Buffer.from('Good evening') },
  'loses the connection': {
    file: (nth) => (nth < 4 ? new DownloadError('It broke off', 'failed') : FILM),
  },
  'cannot be asked for a while': {
    look: (age) => {
      if (age < 20) throw new UpstreamError('upstream_unavailable', 'The upstream cannot be reached');
      return undefined;
    },
  },
};

function failed(invoiced: 'no' | 'yes' | 'perhaps'): VideoStatus {
  return { state: 'failed', code: 'content_policy_violation', message: 'It may not be shown', invoiced };
}

interface Order {
  readonly id: string;
  readonly at: number;
  readonly hook: string | undefined;
  billed: boolean;
}

/** The vendor: what it has taken it works on, whatever anybody knows of it. */
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

/** What a gateway makes of a web hook. */
async function call({ id, hook }: Order, milliseconds: number): Promise<void> {
  await time.delay(milliseconds);
  const named = hooks.verifyToken('fal', hook?.split('/').at(-1) ?? '');
  if (!named) throw new Error('its address names no video');
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
    return this.act('keep', async () => {
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
    throw new Error('no customer here');
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
/** Types of all facts so far. */
let appended: string[];
let due: MemoryWorkflowSchedule;
let positions: Map<string, bigint>;
let files: Files;
let vendor: Vendor;
let behaviour: Behaviour;
let stops: AbortController[];
let parts: Promise<void>[];
let token: number;

const secrets = new Secrets(Buffer.alloc(32, 7));
const hooks = new VideoWebhooks('https://gateway.example', secrets);
const runtime: Runtime = {
  generateId: randomUUID,
  sleep: (milliseconds, signal) =>
    time.delay(milliseconds, undefined, signal ? { signal } : {}).then(
      () => {},
      () => {},
    ),
  reportError: () => {},
};

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

/** A process that has videos made, until it dies. */
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
      ...{ eventReader: store, streams, providers, webhooks: hooks },
      payers: new HoldCommandRouter(streams),
      requests: new VideoRequestStore(own, secrets),
      results: new VideoResults(own, new Net(doing), detectMediaType),
      pollsPerSecond: 100,
      schedule: {
        findDue: (...args) => due.findDue(...args),
        listWaiting: (name) => due.listWaiting(name),
        wake: (...args) => doing('wake', () => due.wake(...args)),
        reschedule: (...args) => doing('put off', () => due.reschedule(...args)),
      },
      ...{ checkpoints: checkpointsOf(doing), clock: time, runtime },
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

/** An account with 10 USD. */
async function holdOfAccount(terms: Wish): Promise<string> {
  const { at } = terms;
  const { accounts } = createStreams(store, NO_SNAPSHOTS, runtime);
  const key = { keyId: 'k', name: 'k', hash: 'h', secret: { key: '', box: '' } };
  const free = { limit: null, resetPeriod: null, expireAt: null };
  const run = (command: Parameters<typeof accounts.run>[1]) => accounts.run(ACCOUNT, command, cause);
  await run({ type: 'OpenAccount', data: { key: { ...key, ...free }, at } });
  const credit = { creditId: 'c', method: 'card', amount: parseUsd('10'), bonus: parseUsd('0') };
  await run({ type: 'AddCredit', data: { ...credit, at } });
  await run({ type: 'HoldFunds', data: { ...terms, keyId: null } });
  return `account-${ACCOUNT}`;
}

/** A challenge whose proof is shown. */
async function holdOfChallenge(terms: Wish): Promise<string> {
  const { challenges } = createStreams(store, NO_SNAPSHOTS, runtime);
  const usable = { priceList: 'p', query, expiresAt: terms.expiresAt, usableUntil: terms.expiresAt, at: terms.at };
  const data = createIssuedChallenge(usable, terms.maxAmount);
  await challenges.run(CHALLENGE, { type: 'IssueChallenge', data }, cause);
  await challenges.run(CHALLENGE, { type: 'ClaimChallenge', data: { ...terms, request: data.request } }, cause);
  return `challenge-${CHALLENGE}`;
}

/** A payer asks for a video, as a gateway does it for it. */
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
  const kept = await new VideoRequestStore(files, secrets).save(
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

/** In how many steps of ten seconds it has ended. */
async function untilEnded(): Promise<void> {
  for (let i = 0; i < 30; i++) {
    if (await hasEnded()) return;
    await pass(10);
  }
}

/** What became of the money, and what the auditor says. */
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
    ...{
      balance: formatUsd(money.add(available, left)),
      held: held + BigInt(holds.size),
      open,
      differences,
      ends: all.filter(isEnd).length,
    },
    unexplained: vendor.bill - money.sum(costs),
  };
}

const isEnd = ({ type }: DomainEvent) => type === 'HoldSettled' || type === 'HoldReleased' || type === 'HoldExpired';
/**
 * Dies at its nth action: before it, or behind it when its answer is lost.
 * @returns whether the video had not ended by then
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
const BY_CHALLENGE = ['makes it', 'refuses it', 'loses its answer', 'fails, and sends its invoice'].map(
  (vendorThat) => ['a challenge', vendorThat] as const,
);

describe.each([...BY_ACCOUNT, ...BY_CHALLENGE])('paid by %s, of a vendor that %s', (payer, vendorThat) => {
  const [held, paidFor, unpaid] =
    payer === 'an account' ? ([holdOfAccount, '6.32', '10'] as const) : ([holdOfChallenge, '0', '3.68'] as const);
  test.each(['before', 'behind'])(
    'a process that dies %s any action leaves a video that ends, is paid once or not at all, and is explained',
    async (where) => {
      for (let n = 1, open = true; open; n++) {
        start();
        behaviour = BEHAVIOURS[vendorThat] as Behaviour;
        await request(randomUUID(), held);
        open = await dieAt(n, where === 'behind');
        work();
        await untilEnded();
        const { balance, held: stillHeld, ends, differences, open: items, unexplained } = await books();
        expect({ n, held: stillHeld, ends, differences }).toEqual({ n, held: 0n, ends: 1, differences: [] });
        const paid = (await journal()).some(({ type }) => type === 'VideoSettled');
        expect(balance).toBe(paid ? paidFor : unpaid);
        expect(vendor.orders.length).toBeLessThanOrEqual(1);
        // What nobody knows is listed, and nothing else: it may have cost as much as is said there, or nothing.
        if (items.length === 0) expect({ n, unexplained }).toEqual({ n, unexplained: 0n });
        else expect([0n, parseUsd(COST)]).toContain(unexplained);
        expect(items.length).toBeLessThanOrEqual(1);
        if (paid) expect(files.kept.get('gen_result/0')?.mediaType).toBe('video/mp4');
        await stopAll();
        expect(open || n > 6).toBe(true);
      }
    },
  );
});

describe('without anybody dying', () => {
  test.each<[string, string, string, number]>([
    ['makes it', 'VideoSettled', '6.32', 0],
    ['is busy at first', 'VideoSettled', '6.32', 0],
    ['refuses it', 'VideoReleased', '10', 0],
    ['loses its answer', 'VideoReleased', '10', 1],
    ['loses its answer, and calls', 'VideoSettled', '6.32', 0],
    ['calls twice, also before it has answered', 'VideoSettled', '6.32', 0],
    ['fails for nothing', 'VideoReleased', '10', 0],
    ['fails, and sends its invoice', 'VideoReleased', '10', 0],
    ['fails, and says nothing of an invoice', 'VideoReleased', '10', 1],
    ['never ends, and sends its invoice', 'VideoReleased', '10', 1],
    ['has lost the file', 'VideoReleased', '10', 0],
    ['has made a text', 'VideoReleased', '10', 0],
    ['loses the connection', 'VideoSettled', '6.32', 0],
    ['cannot be asked for a while', 'VideoSettled', '6.32', 0],
  ])('a vendor that %s leads to %s, a balance of %s and %d open items', async (vendorThat, last, balance, open) => {
    behaviour = BEHAVIOURS[vendorThat] as Behaviour;
    await request();
    work();
    await untilEnded();
    expect((await journal()).at(-1)?.type).toBe(last);
    const after = await books();
    expect({ balance: after.balance, open: after.open.length }).toEqual({ balance, open });
    expect(after.unexplained).toBe(open === 0 ? 0n : parseUsd(COST));
  });

  test('a video takes seven facts, however often it is looked at', async () => {
    behaviour = { made: 50 };
    await request();
    work();
    await untilEnded();
    expect((await journal()).map(({ type }) => type)).toEqual([
      ...['VideoRequested', 'VideoHeld', 'VideoSubmissionBegun', 'VideoSubmitted', 'VideoMade', 'VideoStored'],
      'VideoSettled',
    ]);
  });

  test('a hold that has ended before it was kept is never handed to a vendor', async () => {
    await request();
    const { accounts } = createStreams(store, NO_SNAPSHOTS, runtime);
    await accounts.run(ACCOUNT, { type: 'AbandonHolds', data: { owner: 'gateway-1', at: time.now() } }, cause);
    work();
    await untilEnded();
    expect(vendor.submissions).toBe(0);
    expect((await journal()).find(({ type }) => type === 'VideoFailed')?.data).toMatchObject({
      errorCode: 'hold_ended',
    });
    expect((await books()).differences).toEqual([]);
  });

  test('a request that is not there any more is never handed to a vendor', async () => {
    await request();
    files.kept.clear();
    work();
    await untilEnded();
    expect(vendor.submissions).toBe(0);
    expect((await books()).balance).toBe('10');
  });
});

test('two processes that both believe to have the turn hand it over once', async () => {
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
      ...{ n, balance: '6.32', ends: 1, differences: [], unexplained: 0n },
    });
    expect(vendor.submissions).toBe(1);
    await stopAll();
  }
});

test('an end that the account has forgotten is not made again', async () => {
  for (const vendorThat of ['makes it', 'fails, and sends its invoice']) {
    start();
    behaviour = BEHAVIOURS[vendorThat] as Behaviour;
    await request('the hold');
    // It dies once the account has heard of the end, and before the video knows.
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
    expect(charged).toEqual(vendorThat === 'makes it' ? [parseUsd('3.68').toString()] : []);
    await stopAll();
  }
});
