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

describe('an attempt of an automatic top-up', () => {
  test('starts if a wallet is connected and the balance is below the threshold', () => {
    expect(types([connected()], begin(1))).toEqual(['AutoTopupBegun']);
    given(connected())
      .when(begin(1, at, '10'))
      .thenAlreadySo();
    given().when(begin(1)).thenAlreadySo();
    given(connected(), disconnected).when(begin(1)).thenAlreadySo();
  });

  test('does not start while another one is open, or for a balance that was read before the last one started', () => {
    given(connected(), begun()).when(begin(2)).thenAlreadySo();
    given(connected(), begun(), ended('paid')).when(begin(1)).thenAlreadySo();
    expect(types([connected(), begun(), ended('paid')], begin(2))).toEqual(['AutoTopupBegun']);
  });

  test('does not start beyond the daily number or amount; automatic top-ups then pause until the next day', () => {
    const two = [connected(), begun(), ended('paid'), begun(2), ended('paid', 2)];
    const until = '2026-11-21T00:00:00.000Z';
    given(...two)
      .when(begin(3))
      .then({
        type: 'AutoTopupPaused',
        data: { code: 'DAILY_LIMIT', why: '2 automatic top-ups were started today', until, at },
      });
    expect(types(two, begin(3, until))).toEqual(['AutoTopupBegun']);
    const few = { ...begin(2).data, limits: { attempts: 9, amount: parseUsd('23.99') } } as never;
    expect(types([connected(), begun(), ended('paid')], { type: 'BeginAutoTopup', data: few })).toEqual([
      'AutoTopupPaused',
    ]);
  });

  test('counts towards the later day if the clock steps back over midnight', () => {
    const [before, after, until] = ['2026-11-20T23:59:59.000Z', '2026-11-21T00:00:01.000Z', '2026-11-22T00:00:00.000Z'];
    const once = [connected(), begun(1, after), ended('paid', 1, after)];
    const twice = [...once, begun(2, before), ended('paid', 2, before)];
    expect(types(once, begin(2, before))).toEqual(['AutoTopupBegun']);
    for (const when of [before, after]) {
      const [event] = given(...twice)
        .when(begin(3, when))
        .events();
      expect(event).toMatchObject({ type: 'AutoTopupPaused', data: { code: 'DAILY_LIMIT', until } });
    }
    expect(types(twice, begin(3, until))).toEqual(['AutoTopupBegun']);
  });

  test('starts only after an increasing delay if the previous ones ended unpaid', () => {
    const once = [connected(), begun(), ended('expired')];
    given(...once)
      .when(begin(2, later(59)))
      .thenAlreadySo();
    expect(types(once, begin(2, later(60)))).toEqual(['AutoTopupBegun']);
    const twice = [...once, begun(2), ended('expired', 2)];
    expect(types(twice, begin(3, later(119)))).toEqual([]);
    expect(types([...twice, connected()], begin(3))).toEqual(['AutoTopupPaused']); // the daily limit applies
  });

  test('has only one invoice', () => {
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

  test('ends once: as paid at any time, otherwise not while a request is being sent to the wallet', () => {
    expect(types([...open, asked()], end('paid'))).toEqual(['AutoTopupEnded']);
    expect(types([...open, asked()], end('expired'))).toEqual([]);
    expect(types([...open, asked(), sent], end('expired'))).toEqual(['AutoTopupEnded']);
    given(...open, ended('paid'))
      .when(end('paid'))
      .thenAlreadySo();
  });

  test('is dropped only if no wallet can still pay it', () => {
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
  test('gets one request at a time, with increasing numbers', () => {
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

  test('gets no request from a process that has lost its lease', () => {
    given(...open, asked(1, ONE, 7), sent)
      .when(ask(2, 6, later(60)))
      .thenRefused('lease_lost');
  });

  test('gets no request if it is disconnected, the attempt has ended, or the invoice expires within 30 s', () => {
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

  test('gets no request for an invoice that another wallet can still pay', () => {
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

  test('has only its first response to a request recorded', () => {
    expect(types([...open, asked(), sent], answer('PAID'))).toEqual(['WalletAnswered']);
    given(...open, asked(), sent, answered('PAID'))
      .when(answer('PAYMENT_FAILED'))
      .thenAlreadySo();
    given(...open, asked(), sent)
      .when(answer('PAID', 2))
      .thenAlreadySo();
    expect(types([...open, asked()], answer('PAID'))).toEqual(['WalletAnswered']); // before the request has ended
  });

  test('pauses automatic top-ups with some error codes, such as QUOTA_EXCEEDED, and not with others', () => {
    for (const code of ['QUOTA_EXCEEDED', 'RESTRICTED', 'UNAUTHORIZED', 'NOT_IMPLEMENTED', 'UNSUPPORTED_ENCRYPTION'])
      expect(types([...open, asked(), sent], answer(code))).toEqual(['WalletAnswered', 'AutoTopupPaused']);
    for (const code of ['INSUFFICIENT_BALANCE', 'PAYMENT_FAILED', 'RATE_LIMITED'])
      expect(types([...open, asked(), sent], answer(code))).toEqual(['WalletAnswered']);
  });

  test('has a request recorded as unknown if it may have been sent', () => {
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

  test('has an unneeded request recorded; the attempt is dropped if no earlier request may have been sent', () => {
    const unneeded: EffectOutcome = { isKnown: true, result: { isSent: false, reason: 'enough', isUnneeded: true } };
    expect(types([...open, asked()], endRequest(unneeded))).toEqual(['WalletRequestEnded', 'AutoTopupEnded']);
    const doubtful = [...open, asked(), requestEnded('unknown'), asked(2)];
    expect(types(doubtful, endRequest(unneeded, 2))).toEqual(['WalletRequestEnded']);
  });
});

describe('the plan of an automatic top-up', () => {
  const hour = later(60 * MINUTE);

  test('is empty without a wallet, and checks the balance with one', () => {
    next().when(at).then([]);
    next(connected(), disconnected).when(at).then([]);
    const question = { type: 'balance', attempt: 1, threshold: parseUsd('10') } as const;
    next(connected())
      .when(at)
      .then([{ step: 'query', query: question }], hour);
  });

  test('waits for the end of a pause or of the delay after a failure', () => {
    next(connected(), paused(hour)).when(at).then([], hour);
    next(connected(), begun(), ended('expired')).when(at).then([], later(60));
  });

  test('creates the top-up of an attempt, then requests its payment, with one request at a time', () => {
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
    ['may have been sent', [requestEnded('unknown')], 2],
    ['was not sent', [requestEnded('unsent')], 2],
    ['was sent and got no response', [sent], 5],
    ['was sent and failed', [sent, answered('PAYMENT_FAILED')], 3],
    ['was sent and failed for lack of money', [sent, answered('INSUFFICIENT_BALANCE')], 30],
    ['failed before its end was recorded', [answered('PAYMENT_FAILED'), sent], 3],
  ])('requests the payment of the same invoice again, after a delay, if a request %s', (_, past, seconds) => {
    next(...open, asked(), ...past)
      .when(later(seconds - 1))
      .then([look], later(seconds + 1));
    next(...open, asked(), ...past)
      .when(later(seconds))
      .then([look, pay(2)], later(seconds + 2));
  });

  test('requests no payment while it is paused, or from 30 s before the expiry of the invoice', () => {
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

  test('drops an attempt of a disconnected wallet, unless the wallet can still pay the invoice', () => {
    const drop: AutoTopupStep = { step: 'send', command: { type: 'drop', attempt: 1 } };
    next(...open, disconnected)
      .when(at)
      .then([drop], later(2));
    next(connected(), begun(), disconnected).when(at).then([drop], later(2));
    next(...open, asked(), sent, disconnected)
      .when(later(60))
      .then([look], later(62));
  });

  test('is made again after a charge, credit or reversal, but not after a hold, its transfer or its unpaid end', () => {
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

test('an attempt sends 6 to 13 requests to a wallet that always fails', () => {
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
