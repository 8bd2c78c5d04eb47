/**
 * Events are stored permanently, so every version must stay readable. Each version of each event type has a golden file
 * with examples: the stored data, the data after upcasting, and the postings. The latest version must equal the events
 * of the deciders.
 *
 * A difference means that stored events would be read or posted differently in every installation. Add a new version
 * with an upcaster instead. In files of older versions only the data after upcasting may change, never the postings.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import {
  type AccountCommand,
  type Attempt,
  type AutoTopupCommand,
  accountDecider,
  accountNameDecider,
  autoTopupDecider,
  type ChallengeCommand,
  type ChargeItem,
  challengeDecider,
  type DomainEvent,
  EVENT_SCHEMA,
  type HoldLimits,
  openInvoicesDecider,
  type PaymentClaimCommand,
  type PriceJson,
  type PriceListLine,
  paymentClaimDecider,
  priceListDecider,
  refusedRequestsDecider,
  type SubmissionResult,
  type TopupCommand,
  toCharge,
  toPostings,
  topupDecider,
  UNRESTRICTED_ACCESS,
  type VideoCommand,
  type VideoEndpoint,
  videoDecider,
} from '#domain';
import { MemoryEventStore } from '#eventstore';
import {
  getAppendVersion,
  getLatestVersion,
  NO_STREAM,
  parseUsd,
  START_POSITION,
  type StoredEvent,
  withUpcasting,
} from '#kernel';
import { createFullPayment, createIssuedInvoice } from '#testing';

const at = '2026-11-20T12:00:00.000Z';
const expiresAt = '2026-11-20T12:15:00.000Z';
const query = {
  model: 'openai/gpt-5-mini',
  type: 'chat_completion',
  source: 'api',
  online: false,
  free: false,
} as const;
const key = {
  keyId: '66f0c0ffee66f0c0ffee66f0',
  name: 'Default',
  hash: 'hash',
  secret: { key: 'a1b2c3', box: 'c2VhbGVk' },
  limit: parseUsd('5').toString(),
  resetPeriod: 'daily',
  expireAt: '2027-01-01T00:00:00.000Z',
  ...UNRESTRICTED_ACCESS,
} as const;
const routed = { provider: 'deepinfra', creditor: 'openrouter' };
const sold = { of: query.model, ...routed };
const attempts: readonly Attempt[] = [
  {
    provider: 'openai',
    creditor: 'openai',
    model: query.model,
    outcome: 'upstream_error',
    status: 500,
    milliseconds: 12,
  },
  { ...routed, model: query.model, vendorId: 'gen-1', outcome: 'timeout', milliseconds: 45 },
  { ...routed, model: query.model, outcome: 'ok', milliseconds: 345 },
];
const made = { priceList: '0123456789abcdef', attempts, errorCode: 'timeout' };
const amounts = { cost: parseUsd('0.02').toString(), price: parseUsd('0.0211').toString() };
const usage = { input: 100, cacheRead: 20, output: 30, reasoning: 10, request: 1 };
const call: ChargeItem = { ...sold, vendorId: 'gen-2', usage, terms: { tier: 'flex' }, estimated: true, ...amounts };
const charge = toCharge([call], made);
const searched = toCharge(
  [
    { ...sold, usage: { input: 50, request: 1 }, estimated: true, absorbed: 'timeout', ...amounts, price: '0' },
    call,
    {
      of: 'web_search',
      provider: 'exa',
      creditor: 'exa',
      beside: true,
      usage: { search: 2 },
      estimated: false,
      cost: parseUsd('0.014').toString(),
      price: parseUsd('0.0154').toString(),
    },
  ],
  made,
);
const hold = (holdId: string, more: Partial<HoldLimits & { readonly at: string }> = {}): AccountCommand => ({
  type: 'HoldFunds',
  data: {
    holdId,
    keyId: key.keyId,
    minAmount: parseUsd('0.1'),
    maxAmount: parseUsd('0.1'),
    expiresAt,
    query,
    at,
    ...more,
  },
});

const extension = { minLimitPrice: parseUsd('0.4'), longPrice: parseUsd('0.3') };
const partialHold = { minAmount: parseUsd('0.1'), divisor: 64n, extension };
const extensible = { maxAmount: parseUsd('1'), partialHold };
const stopPrice = parseUsd('0.01');

const actor = { name: 'alice', isVerified: false };

const accountLife: readonly AccountCommand[] = [
  { type: 'OpenAccount', data: { key, at } },
  {
    type: 'AddCredit',
    data: { creditId: 'lnd/payment', method: 'btc-lightning', amount: parseUsd('5'), bonus: parseUsd('0.25'), at },
  },
  {
    type: 'ReverseCredit',
    data: {
      reversalId: 'lnd/refund',
      creditId: 'lnd/payment',
      method: 'btc-lightning',
      why: 'The customer asked for it',
      amount: parseUsd('-2'),
      bonus: parseUsd('-0.1'),
      at,
    },
  },
  {
    type: 'AdjustBalance',
    data: { adjustmentId: 'grant-1', amount: parseUsd('100'), reason: 'Budget of November', actor, at },
  },
  {
    type: 'AdjustBalance',
    data: {
      adjustmentId: 'grant-1-reversed',
      amount: parseUsd('-100'),
      reverses: 'grant-1',
      reason: 'Credited by mistake',
      actor,
      at,
    },
  },
  hold('settled'),
  { type: 'SettleHold', data: { holdId: 'settled', charge, at } },
  hold('released'),
  {
    type: 'ReleaseHold',
    data: {
      holdId: 'released',
      errorCode: 'timeout',
      reason: 'The upstream took too long',
      attempts: attempts.map((attempt) =>
        attempt.outcome === 'timeout' ? { ...attempt, openCost: parseUsd('0.03').toString() } : attempt,
      ),
      at,
    },
  },
  hold('searched'),
  { type: 'KeepHold', data: { holdId: 'searched', owner: 'video-searched', at } },
  { type: 'SettleHold', data: { holdId: 'searched', charge: searched, at } },
  {
    type: 'ReverseCharge',
    data: {
      settled: {
        holdId: 'settled',
        keyId: key.keyId,
        held: parseUsd('0.1').toString(),
        heldAt: at,
        countedAt: at,
        query,
        charged: charge.price,
        charge,
        at,
      },
      at,
    },
  },
  hold('broken off'),
  {
    type: 'ReleaseHold',
    data: {
      holdId: 'broken off',
      errorCode: 'upstream_error',
      reason: 'The answer broke off',
      attempts,
      absorbed: searched,
      at,
    },
  },
  hold('extended'),
  {
    type: 'ExtendHold',
    data: {
      holdId: 'extended',
      minAmount: parseUsd('0.15'),
      targetAmount: parseUsd('0.2'),
      knownAmount: parseUsd('0.1'),
      at,
    },
  },
  { type: 'SettleHold', data: { holdId: 'extended', charge, at } },
  hold('expired'),
  { type: 'ExpireHolds', data: { before: expiresAt, at: expiresAt } },
  { type: 'SettleHold', data: { holdId: 'expired', charge, at: expiresAt } },
  hold('abandoned', { owner: 'gateway-1f3a9c02' }),
  { type: 'AbandonHolds', data: { owner: 'gateway-1f3a9c02', before: expiresAt, at } },
  {
    type: 'UpdateKey',
    data: {
      keyId: key.keyId,
      changes: {
        name: 'ci',
        limit: null,
        resetPeriod: null,
        expireAt: null,
        models: ['openai/*'],
        blocked: true,
        metadata: { team: 'search' },
      },
      at,
    },
  },
  {
    type: 'UpdateKey',
    data: { keyId: key.keyId, changes: { models: null, blocked: false }, at },
  },
  hold('earlier', { at: '2026-11-20T11:59:59.999Z' }),
  { type: 'SettleHold', data: { holdId: 'earlier', charge, at } },
  hold('of unknown speed', extensible),
  {
    type: 'ExtendHold',
    data: {
      holdId: 'of unknown speed',
      minAmount: parseUsd('0.15'),
      targetAmount: parseUsd('0.2'),
      knownAmount: parseUsd('0.1'),
      stopPrice,
      at,
    },
  },
  hold('of known speed', { ...extensible, partialHold: { ...partialHold, extension: { ...extension, stopPrice } } }),
  { type: 'RevokeKey', data: { keyId: key.keyId, at } },
];

const invoice = createIssuedInvoice({ accountId: '3f0e6c1e-7d51-4b0a-9a55-0c6f2a1c9e11', expiresAt });
const { payment } = createFullPayment(invoice);
const onChain = { ...createFullPayment(invoice), payment: { backend: 'lnd', id: 'on chain' } };
const late = '2026-11-20T12:15:01.000Z';
const market = { rate: { value: '50000.00', source: 'coinbase', at: expiresAt }, amount: parseUsd('0.5') };
const refund = { id: 'refund', units: -500_000n, why: 'The customer asked for it' };
const fee = { id: 'liquidity', units: 4_000n, why: 'A channel was opened' };

const toPayment = (id: string) => ({ ...createFullPayment(invoice), payment: { backend: 'lnd', id } });
const large = { ...toPayment('large'), units: 4_000_000n, market: { ...market, amount: parseUsd('2') } };

/** The commands for each of several top-ups. The invoice of the first one is part of the examples. */
const topupLives: readonly (readonly TopupCommand[])[] = [
  [
    { type: 'IssueInvoice', data: { ...invoice, confirmations: 1 } },
    { type: 'RecordPayment', data: createFullPayment(invoice) },
    { type: 'RecordPayment', data: { ...onChain, confirmations: 0 } },
    { type: 'MarkCredited', data: { payment, at } },
    { type: 'RecordPayment', data: { ...onChain, confirmations: 'lost' } },
    { type: 'RecordPayment', data: { ...onChain, confirmations: 0 } },
    { type: 'RecordPayment', data: { ...onChain, isClaimed: false } },
    { type: 'RecordPayment', data: { ...createFullPayment(invoice), reversals: [refund], fees: [fee] } },
  ],
  [{ type: 'RecordPayment', data: { ...toPayment('late'), receivedAt: late, market } }],
  [
    { type: 'RecordPayment', data: { ...toPayment('rated'), market } },
    { type: 'RecordPayment', data: { ...toPayment('rated'), reversals: [{ ...refund, id: 'half' }] } },
  ],
  [
    { type: 'RecordPayment', data: { ...large, maxAmount: parseUsd('1.5') } },
    { type: 'RecordPayment', data: { ...large, reversals: [{ ...refund, units: -1_500_000n, id: 'rest' }] } },
    { type: 'CreditExcess', data: { payment: large.payment, at } },
  ],
];

const claimLife: readonly PaymentClaimCommand[] = [
  { type: 'ClaimPayment', data: { payment, claimant: 'topup-t1', at } },
  { type: 'ClaimPayment', data: { payment, claimant: 'challenge-c1', at } },
  { type: 'CloseContests', data: { why: 'The node was restored', at } },
];

const wallet = {
  wallet: { pubkey: 'ab'.repeat(32), relays: ['wss://relay.example'], encryption: 'nip44_v2' },
  secret: { key: 'a1b2c3', box: 'c2VhbGVk' },
  threshold: parseUsd('10').toString(),
  amount: parseUsd('10').toString(),
} as const;
const numbered = { attempt: 1, request: 1, at };
const limits = { attempts: 9, amount: parseUsd('100') };

const autoTopupLife: readonly AutoTopupCommand[] = [
  { type: 'ConnectWallet', data: { ...wallet, at } },
  {
    type: 'BeginAutoTopup',
    data: { attempt: 1, topupId: '8vy58fo1Z8DYdFkUxp9yJd', balance: parseUsd('9.5'), limits, at },
  },
  { type: 'RecordInvoice', data: { attempt: 1, invoice: 'lnbcrt1', expiresAt, at } },
  { type: 'BeginRequest', data: { ...numbered, token: 4 } },
  { type: 'EndRequest', data: { ...numbered, outcome: { isKnown: false, reason: 'the process ended meanwhile' } } },
  { type: 'BeginRequest', data: { ...numbered, request: 2, token: 5, at: '2026-11-20T12:00:02.000Z' } },
  { type: 'EndRequest', data: { ...numbered, request: 2, outcome: { isKnown: true, result: { isSent: true } } } },
  { type: 'RecordAnswer', data: { ...numbered, request: 2, code: 'QUOTA_EXCEEDED', why: 'The budget is used up' } },
  { type: 'RecordAnswer', data: { ...numbered, code: 'PAID' } },
  { type: 'EndAutoTopup', data: { attempt: 1, outcome: 'paid', at } },
  { type: 'DisconnectWallet', data: { at } },
];

const endpoint: VideoEndpoint = {
  of: 'google/veo-3',
  provider: 'fal',
  creditor: 'fal',
  model: 'fal-ai/veo3',
  usage: { videoSecond: 8 },
  prices: [{ unit: 'videoSecond', per: 1, cost: parseUsd('0.4').toString(), price: parseUsd('0.46').toString() }],
};
const wanted: VideoCommand = {
  type: 'RequestVideo',
  data: {
    accountId: invoice.accountId,
    keyId: key.keyId,
    query: { ...query, type: 'video_generation' },
    hold: { holdId: 'h1', payer: `account-${invoice.accountId}`, amount: parseUsd('3.68').toString() },
    endpoints: [endpoint, { ...endpoint, provider: 'google', creditor: 'google', model: 'veo-3.0-generate-001' }],
    terms: { duration: '8', quality: '720p' },
    priceList: charge.priceList,
    deadline: expiresAt,
    at,
    request: { file: 'req_0aqc1x1f', sha256: 'ab'.repeat(32) },
    result: 'gen_0aqc1x2f',
  },
};
const begunBy = (submission: number): VideoCommand => ({ type: 'BeginSubmission', data: { submission, token: 5, at } });
const answered = (submission: number, answer: SubmissionResult): VideoCommand => ({
  type: 'EndSubmission',
  data: { submission, outcome: { isKnown: true, result: answer }, at },
});
const taken: SubmissionResult = {
  isAccepted: true,
  reference: 'fal-ai/veo3 764cabcf',
  vendorId: '764cabcf',
  hooked: true,
};
const busy = {
  isAccepted: false,
  isRejected: false,
  isRetryable: true,
  code: 'rate_limited',
  reason: 'Too many',
  status: 429,
} as const;
const handedOver: readonly VideoCommand[] = [
  wanted,
  { type: 'RecordHeld', data: { at } },
  begunBy(1),
  answered(1, busy),
  begunBy(2),
];
const lost = (fetch: number): VideoCommand => ({
  type: 'RecordFetchFailure',
  data: { fetch, final: true, why: 'It is gone', at },
});

const videoLives: readonly (readonly VideoCommand[])[] = [
  [
    ...handedOver,
    answered(2, taken),
    { type: 'RecordMade', data: { at } },
    { type: 'RecordStored', data: { mediaType: 'video/mp4', size: 1_234, at } },
    { type: 'RecordSettled', data: { at } },
  ],
  [...handedOver, answered(2, taken), { type: 'RecordMade', data: { at } }, lost(1), lost(2), lost(3)],
  [
    ...handedOver,
    { type: 'EndSubmission', data: { submission: 2, outcome: { isKnown: false, reason: 'the process ended' }, at } },
    { type: 'TimeOutVideo', data: { at: expiresAt } },
    { type: 'RecordReleased', data: { at: expiresAt } },
    { type: 'CloseVideoCost', data: { cost: parseUsd('3.2'), at: expiresAt } },
  ],
  [
    ...handedOver,
    answered(2, {
      isAccepted: false,
      isRejected: true,
      isRetryable: false,
      code: 'invalid_request',
      reason: 'No such style',
    }),
  ],
];

const challengeLife: readonly ChallengeCommand[] = [
  {
    type: 'IssueChallenge',
    data: {
      id: Buffer.alloc(32, 0xab).toString('base64url'),
      query: { ...query, model: 'web/search', type: 'data_enrichment' },
      price: parseUsd('0.0115').toString(),
      priceList: charge.priceList,
      request: 'ZGlnZXN0',
      method: 'btc-lightning',
      coin: 'BTC',
      units: '14000',
      worth: parseUsd('0.0119').toString(),
      rate: { value: '85000', source: 'kraken', at },
      backend: 'lnd',
      reference: 'ab'.repeat(32),
      paymentHash: 'ab'.repeat(32),
      expiresAt,
      usableUntil: expiresAt,
      at,
    },
  },
  { type: 'RecordChallengePayment', data: { units: 15_000n, at } },
  { type: 'ForfeitChallenge', data: { usableBefore: '2026-11-20T12:15:00.001Z', at: '2026-11-20T12:15:00.001Z' } },
];

/** The compiler requires every event type here. */
const types: Record<DomainEvent['type'], true> = {
  AccountOpened: true,
  KeyCreated: true,
  KeyUpdated: true,
  KeyRevoked: true,
  CreditAdded: true,
  CreditReversed: true,
  BalanceAdjusted: true,
  AccountNamed: true,
  FundsHeld: true,
  HoldExtended: true,
  HoldKept: true,
  HoldSettled: true,
  HoldReleased: true,
  HoldExpired: true,
  ChargeAbsorbed: true,
  ChargeReversed: true,
  ChallengeIssued: true,
  ChallengePaid: true,
  ChallengeOverpaid: true,
  ChallengeForfeited: true,
  InvoiceAllowed: true,
  InvoiceDropped: true,
  InvoiceIssued: true,
  PaymentSeen: true,
  PaymentLost: true,
  PaymentReceived: true,
  TopupCredited: true,
  ExcessCredited: true,
  PaymentClaimed: true,
  PaymentContested: true,
  ContestClosed: true,
  PaymentReversed: true,
  PaymentFeeCharged: true,
  WalletConnected: true,
  WalletDisconnected: true,
  AutoTopupBegun: true,
  AutoTopupInvoiced: true,
  WalletAsked: true,
  WalletRequestEnded: true,
  WalletAnswered: true,
  AutoTopupEnded: true,
  AutoTopupPaused: true,
  VideoRequested: true,
  VideoHeld: true,
  VideoSubmissionBegun: true,
  VideoSubmitted: true,
  VideoSubmissionFailed: true,
  VideoMade: true,
  VideoFetchFailed: true,
  VideoStored: true,
  VideoSettled: true,
  VideoFailed: true,
  VideoReleased: true,
  VideoCostClosed: true,
  PriceListPublished: true,
  RequestRefused: true,
};

function stated(): DomainEvent[] {
  const events: DomainEvent[] = [];
  let account = accountDecider.getInitialState();
  for (const command of accountLife) {
    for (const event of accountDecider.decide(command, account)) {
      account = accountDecider.evolve(account, event);
      events.push(event);
    }
  }
  for (const [i, life] of topupLives.entries()) {
    let topup = topupDecider.getInitialState();
    if (i > 0) topup = topupDecider.evolve(topup, { type: 'InvoiceIssued', data: invoice });
    for (const command of life) {
      for (const event of topupDecider.decide(command, topup)) {
        topup = topupDecider.evolve(topup, event);
        events.push(event);
      }
    }
  }
  let auto = autoTopupDecider.getInitialState();
  for (const command of autoTopupLife) {
    for (const event of autoTopupDecider.decide(command, auto)) {
      auto = autoTopupDecider.evolve(auto, event);
      events.push(event);
    }
  }
  for (const life of videoLives) {
    let video = videoDecider.getInitialState();
    for (const command of life) {
      for (const event of videoDecider.decide(command, video)) {
        video = videoDecider.evolve(video, event);
        events.push(event);
      }
    }
  }
  let challenge = challengeDecider.getInitialState();
  for (const command of challengeLife) {
    for (const event of challengeDecider.decide(command, challenge)) {
      challenge = challengeDecider.evolve(challenge, event);
      events.push(event as DomainEvent);
    }
  }
  const tokens: readonly PriceJson[] = [
    { unit: 'input', per: 1_000_000, cost: '3', price: '4', when: { inputTokens: { above: 200_000 } } },
    { unit: 'input', per: 1_000_000, cost: '1', price: '2' },
    { unit: 'output', per: 1_000_000, cost: '5' },
    { unit: 'image', per: 1, price: '6', when: { quality: 'high' } },
  ];
  const search: PriceListLine = {
    of: 'web_search',
    provider: 'exa',
    creditor: 'exa',
    prices: [{ unit: 'search', per: 1, cost: '7', price: '8' }],
  };
  const data = { version: charge.priceList, lines: [{ ...sold, prices: tokens }, search], at };
  const lists = priceListDecider.decide({ type: 'PublishPriceList', data }, null);
  const refused = { accountId: 'me', keyId: key.keyId, requestId: 'h9', query, errorCode: 'insufficient_balance', at };
  const refusals = refusedRequestsDecider.decide(
    { type: 'RecordRefusedRequest', data: refused },
    refusedRequestsDecider.getInitialState(),
  );
  const allowed = openInvoicesDecider.decide(
    { type: 'AllowInvoice', data: { accountId: invoice.accountId, topupId: 't1', expiresAt, maxOpenInvoices: 1, at } },
    openInvoicesDecider.getInitialState(),
  );
  let claims = paymentClaimDecider.getInitialState();
  for (const command of claimLife) {
    for (const event of paymentClaimDecider.decide(command, claims)) {
      claims = paymentClaimDecider.evolve(claims, event);
      events.push(event);
    }
  }
  const dropped = openInvoicesDecider.decide(
    { type: 'DropInvoice', data: { topupId: 't1', at } },
    allowed.reduce(openInvoicesDecider.evolve, openInvoicesDecider.getInitialState()),
  );
  const named = accountNameDecider.decide(
    { type: 'NameAccount', data: { name: 'team-a', accountId: invoice.accountId, actor, at } },
    null,
  );
  return [...events, ...named, ...lists, ...refusals, ...allowed, ...dropped];
}

interface Example {
  readonly stored: unknown;
  /** The data after upcasting. Omitted if it equals `stored`, as it always does in the latest version. */
  readonly today?: unknown;
  readonly postings: readonly (readonly [account: string, customer: string | null, amount: string])[];
}

const FOLDER = path.join(import.meta.dirname, 'golden');

const golden = readdirSync(FOLDER).map((file) => {
  const [, type = '', version] = /^(\w+)\.v(\d+)\.json$/.exec(file) ?? [];
  const examples: readonly Example[] = JSON.parse(readFileSync(path.join(FOLDER, file), 'utf8'));
  return { type, version: Number(version), examples };
});

const latest = (type: string) => getLatestVersion(type, EVENT_SCHEMA);

test('every version of every event type has examples', () => {
  const wanted = Object.keys(types).flatMap((type) =>
    Array.from({ length: latest(type) }, (_, i) => `${type}.v${i + 1}`),
  );
  expect(golden.map(({ type, version }) => `${type}.v${version}`).toSorted()).toEqual(wanted.toSorted());
  for (const { examples } of golden) expect(examples.length).toBeGreaterThan(0);
});

test.each(Object.keys(types))('deciders produce %s events that equal the latest examples', (type) => {
  const data = stated().filter((event) => event.type === type);
  const examples = golden.find((each) => each.type === type && each.version === latest(type))?.examples ?? [];
  expect(data.map((event) => JSON.stringify(event.data))).toEqual(examples.map(({ stored }) => JSON.stringify(stored)));
});

describe.each(golden)('$type of version $version', ({ type, version, examples }) => {
  const stream = type.startsWith('Challenge') ? 'challenge-me' : 'account-me';

  async function readBack(): Promise<readonly StoredEvent<DomainEvent>[]> {
    const store = new MemoryEventStore();
    const metadata = version === 1 ? {} : { version };
    const events = examples.map(({ stored }, i) => ({ id: `${i}`, type, data: stored, metadata }));
    await store.append(stream, NO_STREAM, events);
    const facts: StoredEvent<DomainEvent>[] = [];
    for await (const batch of withUpcasting(store, EVENT_SCHEMA).readAll(START_POSITION))
      facts.push(...(batch.events as typeof facts));
    return facts;
  }

  test('is upcast to the current version', async () => {
    const data = (await readBack()).map((fact) => fact.data);
    expect(data).toEqual(examples.map(({ stored, today }) => today ?? stored));
  });

  test('has the same postings as in its examples', async () => {
    const lines = (await readBack()).map((fact) =>
      toPostings(stream, fact).map(({ account, customer, amount }) => [account, customer, amount.toString()]),
    );
    expect(lines).toEqual(examples.map((example) => example.postings));
  });
});

test('reading appended events returns the same data and the versions that this release writes', async () => {
  const store = withUpcasting(new MemoryEventStore(), EVENT_SCHEMA);
  const facts = stated();
  await store.append(
    'account-me',
    NO_STREAM,
    facts.map((fact, i) => ({ ...fact, id: `${i}`, metadata: {} })),
  );
  for await (const read of store.read('account-me', NO_STREAM)) {
    expect(read).toMatchObject(facts);
    expect(read.map(({ metadata }) => metadata.version ?? 1)).toEqual(
      facts.map(({ type }) => getAppendVersion(type, EVENT_SCHEMA)),
    );
  }
});
