import { describe, expect, test } from '@jest/globals';
import {
  type AutoTopupCommand,
  type AutoTopupEvent,
  type AutoTopupStep,
  autoTopupDecider,
  autoTopupWorkflow,
} from '#domain';
import { type EffectOutcome, fold, parseUsd, type StoredEvent } from '#kernel';
import { createDeciderTest, createWorkflowTest } from '#testing';

const START = Date.parse('2026-11-20T12:00:00.000Z');
const later = (seconds: number) => new Date(START + seconds * 1000).toISOString();
const at = later(0);
const MINUTE = 60;
const EXPIRY = 15 * MINUTE;
const [ONE, OTHER] = ['aa'.repeat(32), 'bb'.repeat(32)];
const TOPUP = '8vy58fo1Z8DYdFkUxp9yJd';
const limits = { attempts: 2, amount: parseUsd('25') };

const given = createDeciderTest(autoTopupDecider);
const next = createWorkflowTest(autoTopupWorkflow);

const connected = (pubkey = ONE, when = at): AutoTopupEvent => {
  const wallet = { pubkey, relays: ['wss://relay.example'], encryption: 'nip44_v2' } as const;
  const amounts = { threshold: parseUsd('10').toString(), amount: parseUsd('12').toString() };
  return { type: 'WalletConnected', data: { wallet, secret: { key: 'k', box: 'b' }, ...amounts, at: when } };
};
const disconnected: AutoTopupEvent = { type: 'WalletDisconnected', data: { at } };
const begun = (attempt = 1, when = at): AutoTopupEvent => {
  const amounts = { amount: parseUsd('12').toString(), balance: parseUsd('9').toString() };
  return { type: 'AutoTopupBegun', data: { attempt, topupId: TOPUP, ...amounts, at: when } };
};
const invoiced = (attempt = 1): AutoTopupEvent => ({
  type: 'AutoTopupInvoiced',
  data: { attempt, invoice: 'lnbcrt1', expiresAt: later(EXPIRY), at },
});
const asked = (request = 1, wallet = ONE, token = 5): AutoTopupEvent => ({
  type: 'WalletAsked',
  data: { attempt: 1, request, wallet, token, at },
});
const requestEnded = (outcome: 'sent' | 'unsent' | 'unknown', request = 1): AutoTopupEvent => ({
  type: 'WalletRequestEnded',
  data: { attempt: 1, request, outcome, at },
});
const sent = requestEnded('sent');
const answered = (code: string, request = 1): AutoTopupEvent => ({
  type: 'WalletAnswered',
  data: { attempt: 1, request, code, at },
});
const ended = (outcome: 'paid' | 'expired' | 'dropped', attempt = 1, when = at): AutoTopupEvent => ({
  type: 'AutoTopupEnded',
  data: { attempt, outcome, at: when },
});
const paused = (until: string): AutoTopupEvent => ({
  type: 'AutoTopupPaused',
  data: { code: 'QUOTA_EXCEEDED', why: 'The budget is used up', until, at },
});
const open = [connected(), begun(), invoiced()] as const;

const begin = (attempt: number, when = at, balance = '9.99'): AutoTopupCommand => ({
  type: 'BeginAutoTopup',
  data: { attempt, topupId: TOPUP, balance: parseUsd(balance), limits, at: when },
});
const ask = (request: number, token = 5, when = at): AutoTopupCommand => ({
  type: 'BeginRequest',
  data: { attempt: 1, request, token, at: when },
});
const endRequest = (outcome: EffectOutcome, request = 1): AutoTopupCommand => ({
  type: 'EndRequest',
  data: { attempt: 1, request, outcome, at },
});
const answer = (code: string, request = 1): AutoTopupCommand => ({
  type: 'RecordAnswer',
  data: { attempt: 1, request, code, at },
});
const end = (outcome: 'paid' | 'expired' | 'dropped'): AutoTopupCommand => ({
  type: 'EndAutoTopup',
  data: { attempt: 1, outcome, at },
});
const types = (past: readonly AutoTopupEvent[], command: AutoTopupCommand) =>
  given(...past)
    .when(command)
    .events()
    .map(({ type }) => type);

const look: AutoTopupStep = {
  step: 'query',
  query: { type: 'invoice', attempt: 1, topupId: TOPUP, hasExpired: false },
};
const pay = (request: number): AutoTopupStep => ({
  step: 'effect',
  key: `1/${request}`,
  effect: { attempt: 1, request, topupId: TOPUP, invoice: 'lnbcrt1' },
});

describe('an attempt', () => {
  test('begins where a wallet is connected and the balance is below the threshold', () => {
    expect(types([connected()], begin(1))).toEqual(['AutoTopupBegun']);
    given(connected())
      .when(begin(1, at, '10'))
      .thenAlreadySo();
    given().when(begin(1)).thenAlreadySo();
    given(connected(), disconnected).when(begin(1)).thenAlreadySo();
  });

  test('is the only one, and begins once, however late the balance of before is told', () => {
    given(connected(), begun()).when(begin(2)).thenAlreadySo();
    given(connected(), begun(), ended('paid')).when(begin(1)).thenAlreadySo();
    expect(types([connected(), begun(), ended('paid')], begin(2))).toEqual(['AutoTopupBegun']);
  });

  test('pauses the day where there were as many as a day may have, or as much', () => {
    const two = [connected(), begun(), ended('paid'), begun(2), ended('paid', 2)];
    const until = '2026-11-21T00:00:00.000Z';
    given(...two)
      .when(begin(3))
      .then({
        type: 'AutoTopupPaused',
        data: { code: 'DAILY_LIMIT', why: '2 automatic top-ups were begun today', until, at },
      });
    expect(types(two, begin(3, until))).toEqual(['AutoTopupBegun']);
    const few = { ...begin(2).data, limits: { attempts: 9, amount: parseUsd('23.99') } } as never;
    expect(types([connected(), begun(), ended('paid')], { type: 'BeginAutoTopup', data: few })).toEqual([
      'AutoTopupPaused',
    ]);
  });

  test('that ended unpaid is followed by another one only later, each time by more', () => {
    const once = [connected(), begun(), ended('expired')];
    given(...once)
      .when(begin(2, later(59)))
      .thenAlreadySo();
    expect(types(once, begin(2, later(60)))).toEqual(['AutoTopupBegun']);
    const twice = [...once, begun(2), ended('expired', 2)];
    expect(types(twice, begin(3, later(119)))).toEqual([]);
    expect(types([...twice, connected()], begin(3))).toEqual(['AutoTopupPaused']); // the wait is over, the day is full
  });

  test('has one invoice', () => {
    const record: AutoTopupCommand = {
      type: 'RecordInvoice',
      data: { attempt: 1, invoice: 'lnbcrt2', expiresAt: later(EXPIRY), at },
    };
    expect(types([connected(), begun()], record)).toEqual(['AutoTopupInvoiced']);
    given(...open)
      .when(record)
      .thenAlreadySo();
    given(connected(), begun(), ended('dropped')).when(record).thenAlreadySo();
  });

  test('ends once, paid at any time, and otherwise not while its wallet is asked', () => {
    expect(types([...open, asked()], end('paid'))).toEqual(['AutoTopupEnded']);
    expect(types([...open, asked()], end('expired'))).toEqual([]);
    expect(types([...open, asked(), sent], end('expired'))).toEqual(['AutoTopupEnded']);
    given(...open, ended('paid'))
      .when(end('paid'))
      .thenAlreadySo();
  });

  test('is dropped only where no wallet may pay it', () => {
    expect(types(open, end('dropped'))).toEqual(['AutoTopupEnded']);
    for (const code of ['PAYMENT_FAILED', 'INTERNAL', 'OTHER', 'PAID', 'SOMETHING_NEW'])
      expect(types([...open, asked(), sent, answered(code)], end('dropped'))).toEqual([]);
    for (const code of ['QUOTA_EXCEEDED', 'INSUFFICIENT_BALANCE'])
      expect(types([...open, asked(), sent, answered(code)], end('dropped'))).toEqual(['AutoTopupEnded']);
    expect(types([...open, asked(), requestEnded('unsent')], end('dropped'))).toEqual(['AutoTopupEnded']);
    expect(types([...open, asked(), requestEnded('unknown')], end('dropped'))).toEqual([]);
  });
});

describe('a wallet', () => {
  test('is asked once at a time, under numbers that count up', () => {
    expect(types(open, ask(1))).toEqual(['WalletAsked']);
    given(...open, asked())
      .when(ask(1))
      .thenAlreadySo();
    given(...open, asked())
      .when(ask(2))
      .thenAlreadySo();
    given(...open, asked(), requestEnded('unknown'))
      .when(ask(1, 6, later(9)))
      .thenAlreadySo();
    expect(types([...open, asked(), requestEnded('unknown')], ask(2, 6, later(2)))).toEqual(['WalletAsked']);
  });

  test('is not asked by a process that has lost its turn', () => {
    given(...open, asked(1, ONE, 7), sent)
      .when(ask(2, 6, later(60)))
      .thenRefused('lease_lost');
  });

  test('is not asked once it is disconnected, nor for an attempt that is over, nor shortly before the expiry', () => {
    given(...open, disconnected)
      .when(ask(1))
      .thenAlreadySo();
    given(...open, ended('paid'))
      .when(ask(1))
      .thenAlreadySo();
    given(...open)
      .when(ask(1, 5, later(EXPIRY - 30)))
      .thenAlreadySo();
  });

  test('is not asked for what another one may yet pay', () => {
    given(...open, asked(), sent, connected(OTHER))
      .when(ask(2, 5, later(60)))
      .thenAlreadySo();
    given(...open, asked(), sent, answered('PAYMENT_FAILED'), connected(OTHER))
      .when(ask(2, 5, later(60)))
      .thenAlreadySo();
    expect(types([...open, asked(), sent, answered('QUOTA_EXCEEDED'), connected(OTHER)], ask(2))).toEqual([
      'WalletAsked',
    ]);
    const twice = [...open, asked(), requestEnded('unknown'), asked(2), requestEnded('sent', 2)];
    given(...twice, answered('UNAUTHORIZED', 2), connected(OTHER))
      .when(ask(3))
      .thenAlreadySo();
  });

  test('answers each request once', () => {
    expect(types([...open, asked(), sent], answer('PAID'))).toEqual(['WalletAnswered']);
    given(...open, asked(), sent, answered('PAID'))
      .when(answer('PAYMENT_FAILED'))
      .thenAlreadySo();
    given(...open, asked(), sent)
      .when(answer('PAID', 2))
      .thenAlreadySo();
    expect(types([...open, asked()], answer('PAID'))).toEqual(['WalletAnswered']); // before it is noted that it was sent
  });

  test('that says that it will not pay pauses the account for a day', () => {
    for (const code of ['QUOTA_EXCEEDED', 'RESTRICTED', 'UNAUTHORIZED', 'NOT_IMPLEMENTED', 'UNSUPPORTED_ENCRYPTION'])
      expect(types([...open, asked(), sent], answer(code))).toEqual(['WalletAnswered', 'AutoTopupPaused']);
    for (const code of ['INSUFFICIENT_BALANCE', 'PAYMENT_FAILED', 'RATE_LIMITED'])
      expect(types([...open, asked(), sent], answer(code))).toEqual(['WalletAnswered']);
  });

  test('of which it is not known whether it was asked is so in the books', () => {
    given(...open, asked())
      .when(endRequest({ isKnown: false, reason: 'the process ended meanwhile' }))
      .then({
        ...requestEnded('unknown'),
        data: { ...requestEnded('unknown').data, why: 'the process ended meanwhile' },
      } as never);
    given(...open, asked(), sent)
      .when(endRequest({ isKnown: false, reason: '' }))
      .thenAlreadySo();
  });

  test('that need not be asked any more ends the attempt, where none was asked before', () => {
    const unneeded: EffectOutcome = { isKnown: true, result: { isSent: false, reason: 'enough', isUnneeded: true } };
    expect(types([...open, asked()], endRequest(unneeded))).toEqual(['WalletRequestEnded', 'AutoTopupEnded']);
    const doubtful = [...open, asked(), requestEnded('unknown'), asked(2)];
    expect(types(doubtful, endRequest(unneeded, 2))).toEqual(['WalletRequestEnded']);
  });
});

describe('what is next', () => {
  const hour = later(60 * MINUTE);

  test('is nothing without a wallet, and the balance with one', () => {
    next().when(at).then([]);
    next(connected(), disconnected).when(at).then([]);
    const question = { type: 'balance', attempt: 1, threshold: parseUsd('10') } as const;
    next(connected())
      .when(at)
      .then([{ step: 'query', query: question }], hour);
  });

  test('waits for the end of a pause, or of the wait after a failure', () => {
    next(connected(), paused(hour)).when(at).then([], hour);
    next(connected(), begun(), ended('expired')).when(at).then([], later(60));
  });

  test('of an attempt is its top-up, then its payment, once', () => {
    const command = { type: 'topup', attempt: 1, topupId: TOPUP, amount: parseUsd('12') } as const;
    next(connected(), begun())
      .when(at)
      .then([{ step: 'send', command }], later(2));
    next(...open)
      .when(at)
      .then([look, pay(1)], later(2));
    next(...open, asked())
      .when(at)
      .then([look], later(2));
  });

  test.each<[string, readonly AutoTopupEvent[], number]>([
    ['unknown whether it was sent', [requestEnded('unknown')], 2],
    ['not sent', [requestEnded('unsent')], 2],
    ['sent and not answered', [sent], 5],
    ['sent, and answered with a failure', [sent, answered('PAYMENT_FAILED')], 3],
    ['sent, and answered with a lack of money', [sent, answered('INSUFFICIENT_BALANCE')], 30],
    ['answered before it was noted as sent', [answered('PAYMENT_FAILED'), sent], 3],
  ])('of a request that is %s is the same invoice again, later', (_, past, seconds) => {
    next(...open, asked(), ...past)
      .when(later(seconds - 1))
      .then([look], later(seconds + 1));
    next(...open, asked(), ...past)
      .when(later(seconds))
      .then([look, pay(2)], later(seconds + 2));
  });

  test('asks for no payment while it is paused, nor shortly before the expiry, nor after it', () => {
    next(...open, asked(), sent, answered('QUOTA_EXCEEDED'), paused(hour))
      .when(later(600))
      .then([look], later(602));
    next(...open)
      .when(later(EXPIRY - 30))
      .then([look], later(EXPIRY - 28));
    const over = { ...look, query: { ...look.query, hasExpired: true } } as AutoTopupStep;
    next(...open, asked(), sent)
      .when(later(EXPIRY + 59))
      .then([look], later(EXPIRY + 61));
    next(...open, asked(), sent)
      .when(later(EXPIRY + 60))
      .then([over], later(EXPIRY + 62));
  });

  test('of a disconnected wallet is to drop what it was not asked for, and to wait for what it may pay', () => {
    const drop: AutoTopupStep = { step: 'send', command: { type: 'drop', attempt: 1 } };
    next(...open, disconnected)
      .when(at)
      .then([drop], later(2));
    next(connected(), begun(), disconnected).when(at).then([drop], later(2));
    next(...open, asked(), sent, disconnected)
      .when(later(60))
      .then([look], later(62));
  });

  test('follows from the balance falling, and from credit, and from no hold', () => {
    const fact = (type: string, stream = 'account-a') => ({ type, stream }) as StoredEvent;
    expect(
      ['HoldSettled', 'CreditReversed', 'CreditAdded'].map((type) => autoTopupWorkflow.findAffectedId?.(fact(type))),
    ).toEqual(['a', 'a', 'a']);
    expect(
      ['FundsHeld', 'HoldKept', 'HoldReleased', 'HoldExpired'].map((type) =>
        autoTopupWorkflow.findAffectedId?.(fact(type)),
      ),
    ).toEqual([undefined, undefined, undefined, undefined]);
  });
});

test('however often a wallet fails, an attempt asks it about a dozen times', () => {
  let state = fold(autoTopupDecider, autoTopupDecider.getInitialState(), open);
  let requests = 0;
  for (let now = START; now < START + EXPIRY * 1000; now += 2_000) {
    const when = new Date(now).toISOString();
    const step = autoTopupWorkflow.plan(state, when).steps.find((each) => each.step === 'effect');
    if (!step) continue;
    requests++;
    const facts = [
      asked(requests),
      { ...sent, data: { ...sent.data, request: requests, at: when } },
    ] as AutoTopupEvent[];
    const failed = {
      ...answered('PAYMENT_FAILED', requests),
      data: { ...answered('PAYMENT_FAILED', requests).data, at: when },
    };
    state = fold(autoTopupDecider, state, [...facts, failed as AutoTopupEvent]);
  }
  expect(requests).toBeGreaterThan(5);
  expect(requests).toBeLessThan(14);
});
