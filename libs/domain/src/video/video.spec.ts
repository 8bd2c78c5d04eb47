import { describe, expect, test } from '@jest/globals';
import {
  type SubmissionResult,
  type VideoCommand,
  type VideoEndpoint,
  type VideoEvent,
  type VideoStep,
  videoDecider,
  videoWorkflow,
} from '#domain';
import { fold, parseUsd } from '#kernel';
import { createDeciderTest, createWorkflowTest } from '#testing';

const START = Date.parse('2026-11-20T12:00:00.000Z');
const later = (seconds: number) => new Date(START + seconds * 1000).toISOString();
const at = later(0);
const DEADLINE = 1_800;

const given = createDeciderTest(videoDecider);
const next = createWorkflowTest(videoWorkflow);

const fal: VideoEndpoint = {
  of: 'google/veo-3',
  provider: 'fal',
  creditor: 'fal',
  model: 'fal-ai/veo3',
  usage: { videoSecond: 8 },
  prices: [{ unit: 'videoSecond', per: 1, cost: parseUsd('0.4').toString(), price: parseUsd('0.46').toString() }],
};
const google: VideoEndpoint = { ...fal, provider: 'google', creditor: 'google', model: 'veo-3.0-generate-001' };
const hold = { holdId: 'h1', payer: 'account-a', amount: parseUsd('3.68').toString() };
const request = { file: 'req_1', sha256: 'ab' };
const requested = (endpoints = [fal, google], held = hold): VideoEvent => ({
  type: 'VideoRequested',
  data: {
    accountId: 'a',
    keyId: 'k',
    hold: held,
    endpoints,
    terms: {},
    priceList: 'p',
    request,
    result: 'gen_1',
    query: { model: 'google/veo-3', type: 'video_generation', source: 'api', online: false, free: false },
    deadline: later(DEADLINE),
    at,
  },
});
const held: VideoEvent = { type: 'VideoHeld', data: { at } };
const begun = (submission = 1, endpoint = 0, token = 5): VideoEvent => ({
  type: 'VideoSubmissionBegun',
  data: { submission, endpoint, token, at },
});
const submitted = (hooked = false, submission = 1): VideoEvent => ({
  type: 'VideoSubmitted',
  data: { submission, reference: 'ref', vendorId: 'id', hooked, at },
});
const notTaken = (
  outcome: 'refused' | 'unavailable' | 'unknown',
  submission = 1,
  code = 'rate_limited',
): VideoEvent => ({ type: 'VideoSubmissionFailed', data: { submission, outcome, code, why: 'so', at } });
const made: VideoEvent = { type: 'VideoMade', data: { at } };
const open = [requested(), held] as const;
const atVendor = [...open, begun(), submitted()] as const;

const begin = (submission = 1, token = 5, when = at): VideoCommand => ({
  type: 'BeginSubmission',
  data: { submission, token, at: when },
});
const end = (answer: SubmissionResult, submission = 1): VideoCommand => ({
  type: 'EndSubmission',
  data: { submission, outcome: { isKnown: true, result: answer }, at },
});
const unknown: VideoCommand = {
  type: 'EndSubmission',
  data: { submission: 1, outcome: { isKnown: false, reason: 'the connection broke' }, at },
};
const taken: SubmissionResult = { isAccepted: true, reference: 'ref', vendorId: 'id', hooked: false };
const busy: SubmissionResult = {
  isAccepted: false,
  isRejected: false,
  isRetryable: true,
  code: 'rate_limited',
  reason: 'so',
};
const wrong: SubmissionResult = {
  isAccepted: false,
  isRejected: true,
  isRetryable: false,
  code: 'invalid_request',
  reason: 'so',
};
const recordMade: VideoCommand = { type: 'RecordMade', data: { at } };
const store: VideoCommand = { type: 'RecordStored', data: { mediaType: 'video/mp4', size: 9, at } };
const fail = (phase: 'requested' | 'held' | 'submitted', invoiced: 'no' | 'yes' | 'perhaps' = 'no'): VideoCommand => ({
  type: 'FailVideo',
  data: { phase, errorCode: 'upstream_error', message: 'It broke', invoiced, at },
});
const timeOut: VideoCommand = { type: 'TimeOutVideo', data: { at: later(DEADLINE) } };
const fetchFailed = (fetch: number, final = false): VideoEvent => ({
  type: 'VideoFetchFailed',
  data: { fetch, final, why: 'gone', at },
});
const types = (past: readonly VideoEvent[], command: VideoCommand) =>
  given(...past)
    .when(command)
    .events()
    .map(({ type }) => type);
const continued = (past: readonly VideoEvent[], ...commands: readonly VideoCommand[]): readonly VideoEvent[] => {
  const facts = [...past];
  for (const command of commands)
    facts.push(
      ...given(...facts)
        .when(command)
        .events(),
    );
  return facts;
};

describe('a submission', () => {
  test('starts after the transfer of the hold, before the deadline, and only if no other one is open', () => {
    expect(types(open, begin())).toEqual(['VideoSubmissionBegun']);
    given(requested()).when(begin()).thenAlreadySo();
    given(...open, begun())
      .when(begin())
      .thenAlreadySo();
    given(...open, begun())
      .when(begin(2))
      .thenAlreadySo();
    given(...open)
      .when(begin(1, 5, later(DEADLINE)))
      .thenAlreadySo();
  });

  test('is not started by a process that has lost its lease', () => {
    given(...open, begun(), notTaken('unavailable'))
      .when(begin(2, 4))
      .thenRefused('lease_lost');
  });

  test('ends the job if a provider rejects the request, even with other endpoints left', () => {
    expect(types([...open, begun()], end(wrong))).toEqual(['VideoSubmissionFailed', 'VideoFailed']);
  });

  test('is repeated at the next endpoint if a provider is unavailable; the last endpoint gets at most three', () => {
    const facts = continued([...open, begun()], end(busy), begin(2), end(busy, 2));
    const endpoints = facts.flatMap(({ type, data }) => (type === 'VideoSubmissionBegun' ? [data.endpoint] : []));
    expect(endpoints).toEqual([0, 1]);
    given(...facts)
      .when(begin(3, 5, later(1)))
      .thenAlreadySo();
    const third = continued(facts, begin(3, 5, later(2)), end(busy, 3), begin(4, 5, later(12)));
    expect(types(third, end(busy, 4))).toEqual(['VideoSubmissionFailed', 'VideoFailed']);
    expect(
      types([...open, begun(), notTaken('unavailable'), begun(2, 1)], end({ ...busy, isRetryable: false }, 2)),
    ).toEqual(['VideoSubmissionFailed', 'VideoFailed']);
  });

  test('is not repeated while it is unknown whether it was accepted', () => {
    const doubtful = continued([...open, begun()], unknown);
    expect(doubtful.at(-1)).toMatchObject({ type: 'VideoSubmissionFailed', data: { outcome: 'unknown' } });
    given(...doubtful)
      .when(begin(2))
      .thenAlreadySo();
    given(...doubtful)
      .when(unknown)
      .thenAlreadySo();
  });

  test('gets its known outcome later if the outcome was unknown at first', () => {
    const doubtful = continued([...open, begun()], unknown);
    expect(types(doubtful, end(taken))).toEqual(['VideoSubmitted']);
    expect(types(doubtful, end(busy))).toEqual(['VideoSubmissionFailed']);
    given(...doubtful)
      .when(end(taken, 2))
      .thenAlreadySo();
    given(...atVendor)
      .when(end({ ...taken, reference: 'another' }))
      .thenAlreadySo();
  });
});

describe('a video', () => {
  test('is requested once, before any other command', () => {
    given(requested())
      .when({ type: 'RequestVideo', data: requested([google]).data as never })
      .thenAlreadySo();
    given().when(recordMade).thenRefused('video_not_found');
  });

  test('is charged for the ordered usage when it is stored, at most the held amount', () => {
    const past = [...atVendor, made];
    const [stored] = given(...past)
      .when(store)
      .events();
    const charge = { cost: parseUsd('3.2').toString(), price: parseUsd('3.68').toString(), priceList: 'p' };
    expect(stored).toMatchObject({ type: 'VideoStored', data: { charge } });
    const settle: VideoCommand = { type: 'RecordSettled', data: { at } };
    given(...past, stored as VideoEvent)
      .when(settle)
      .then({ type: 'VideoSettled', data: { charged: hold.amount, at } });
    const short = { ...hold, amount: parseUsd('3').toString() };
    const dearer = continued([requested([fal], short), held, begun(), submitted()], recordMade, store, settle);
    expect(dearer.at(-1)?.data).toMatchObject({ charged: parseUsd('3').toString() });
  });

  test('fails if its provider reports a failure; an invoiced cost is absorbed, an uncertain cost is open', () => {
    const [free] = given(...atVendor)
      .when(fail('submitted'))
      .events();
    expect(free?.data).toEqual({ errorCode: 'upstream_error', message: 'It broke', at });
    const [dear] = given(...atVendor)
      .when(fail('submitted', 'yes'))
      .events();
    expect(dear).toMatchObject({ data: { absorbed: { cost: parseUsd('3.2').toString(), price: '0' } } });
    const [open] = given(...atVendor)
      .when(fail('submitted', 'perhaps'))
      .events();
    expect(open).toMatchObject({
      data: { open: { creditor: 'fal', vendorId: 'id', most: parseUsd('3.2').toString() } },
    });
  });

  test('cannot be generated after a failure; once generated, neither a report nor the deadline fails it', () => {
    const failed = continued(atVendor, fail('submitted'));
    for (const command of [recordMade, store, timeOut, end(taken), begin(2)])
      given(...failed)
        .when(command)
        .thenAlreadySo();
    for (const command of [fail('submitted'), timeOut])
      given(...atVendor, made)
        .when(command)
        .thenAlreadySo();
  });

  test('fails only in the phase in which the failure was found', () => {
    given(...open)
      .when(fail('requested'))
      .thenAlreadySo();
    expect(types([requested()], fail('requested'))).toEqual(['VideoFailed']);
  });

  test('fails with result_lost after repeated failed fetches, and its cost is absorbed', () => {
    const last = continued(
      [...atVendor, made],
      ...[1, 2, 3].map(
        (fetch): VideoCommand => ({
          type: 'RecordFetchFailure',
          data: { fetch, final: true, why: 'gone', at },
        }),
      ),
    );
    expect(last.at(-1)).toMatchObject({
      data: { errorCode: 'result_lost', absorbed: { cost: parseUsd('3.2').toString() } },
    });
    const many = Array.from({ length: 19 }, (_, i) => fetchFailed(i + 1));
    const last20: VideoCommand = { type: 'RecordFetchFailure', data: { fetch: 20, final: false, why: 'away', at } };
    expect(types([...atVendor, made, ...many], last20)).toEqual(['VideoFetchFailed', 'VideoFailed']);
    given(...atVendor, made, fetchFailed(1))
      .when({ ...last20, data: { ...last20.data, fetch: 1 } } as never)
      .thenAlreadySo();
  });
});

describe('at its deadline, a video', () => {
  test('fails without an open cost if no submission has started', () => {
    for (const past of [[requested()], open]) {
      const [failed] = given(...past)
        .when(timeOut)
        .events();
      expect(failed?.data).toEqual({
        errorCode: 'timeout',
        message: 'The video was not ready in time',
        at: later(DEADLINE),
      });
    }
    given(...open, begun())
      .when(timeOut)
      .thenAlreadySo();
    given(...open)
      .when({ type: 'TimeOutVideo', data: { at: later(DEADLINE - 1) } })
      .thenAlreadySo();
  });

  test('fails with an open cost if a provider may invoice it; the invoiced amount then closes the cost once', () => {
    const named = { of: 'google/veo-3', provider: 'fal', creditor: 'fal' };
    const most = parseUsd('3.2').toString();
    const lost = continued(atVendor, timeOut);
    expect(lost.at(-1)?.data).toMatchObject({ open: { ...named, vendorId: 'id', most } });
    const doubtful = continued([...open, begun()], unknown, timeOut);
    expect(doubtful.at(-1)?.data).toMatchObject({ open: { ...named, most } });
    const close = (cost: string): VideoCommand => ({ type: 'CloseVideoCost', data: { cost: parseUsd(cost), at } });
    const closed = continued(doubtful, close('3'));
    expect(closed.at(-1)).toEqual({ type: 'VideoCostClosed', data: { ...named, cost: parseUsd('3').toString(), at } });
    given(...closed)
      .when(close('3'))
      .thenAlreadySo();
    given(...closed)
      .when(close('0'))
      .thenRefused('no_open_cost');
    given(...atVendor)
      .when(close('3'))
      .thenRefused('no_open_cost');
    given(...continued(atVendor, fail('submitted')))
      .when(close('3'))
      .thenRefused('no_open_cost');
  });
});

describe('the plan of a video', () => {
  const send = (command: object): VideoStep => ({ step: 'send', command }) as VideoStep;
  const handover = (submission: number, nth: number, endpoint: VideoEndpoint): VideoStep => ({
    step: 'effect',
    key: `submit-${submission}`,
    effect: { submission, endpointIndex: nth, endpoint, hold, request },
  });
  const place = { hold, upstream: 'fal', reference: 'ref' };
  const look = (isOver = false): VideoStep => ({
    step: 'query',
    query: { type: 'state', ...place, isPastDeadline: isOver },
  });

  test('transfers the hold, then submits the job', () => {
    next().when(at).then([]);
    next(requested())
      .when(at)
      .then([send({ type: 'keep', hold })], later(5));
    next(...open)
      .when(at)
      .then([handover(1, 0, fal)], later(5));
    next(...open, begun(), notTaken('unavailable'))
      .when(at)
      .then([handover(2, 1, google)], later(5));
    next(...open, begun(), notTaken('unknown'))
      .when(at)
      .then([], later(DEADLINE));
  });

  test('fetches the result and settles the hold, or releases the hold after a failure', () => {
    const result = { type: 'result', ...place, fetch: 1, result: 'gen_1' } as const;
    next(...atVendor, made)
      .when(at)
      .then([{ step: 'query', query: result }], later(5));
    next(...atVendor, made, fetchFailed(1))
      .when(at)
      .then([], later(1));
    next(...atVendor, made, fetchFailed(1))
      .when(later(1))
      .then([{ step: 'query', query: { ...result, fetch: 2 } }], later(6));
    const [stored] = given(...atVendor, made)
      .when(store)
      .events() as [Extract<VideoEvent, { type: 'VideoStored' }>];
    const { charge } = stored.data;
    next(...atVendor, made, stored)
      .when(at)
      .then([send({ type: 'settle', hold, charge })], later(5));
    next(...atVendor, made, stored, { type: 'VideoSettled', data: { charged: '1', at } })
      .when(at)
      .then([]);
    const failed = continued(open, timeOut);
    const failure = failed.at(-1)?.data;
    next(...failed)
      .when(at)
      .then([send({ type: 'release', hold, failure, attempts: [] })], later(5));
    next(...failed, { type: 'VideoReleased', data: { at } })
      .when(at)
      .then([]);
  });

  test('polls every 2 to 75 s, fewer than 45 times before the deadline', () => {
    next(...atVendor)
      .when(later(0.5))
      .then([], later(1));
    let looks = 0;
    let last = 0;
    const state = fold(videoDecider, videoDecider.getInitialState(), atVendor);
    for (let now = 2; now < DEADLINE; looks++) {
      const { steps, dueAt = '' } = videoWorkflow.plan(state, later(now));
      expect(steps).toEqual([look()]);
      const wait = (Date.parse(dueAt) - START) / 1000 - now;
      expect(wait).toBeLessThanOrEqual(75);
      expect(wait).toBeGreaterThanOrEqual(Math.min(2, DEADLINE - now));
      last = now;
      now += wait;
    }
    expect(last).toBeLessThan(DEADLINE);
    expect(looks).toBeLessThan(45);
  });

  test('polls less often if the provider calls a webhook', () => {
    const state = fold(videoDecider, videoDecider.getInitialState(), [...open, begun(), submitted(true)]);
    const { steps, dueAt = '' } = videoWorkflow.plan(state, later(2));
    expect(steps).toEqual([look()]);
    expect(Date.parse(dueAt) - START).toBeGreaterThanOrEqual(32_000);
  });

  test('polls after the deadline, and times out 15 minutes later, or at once without an accepted submission', () => {
    next(...atVendor)
      .when(later(DEADLINE))
      .then([look(true)], later(DEADLINE + 5));
    const over = later(DEADLINE + 15 * 60);
    next(...atVendor)
      .when(over)
      .then([send({ type: 'time_out' })], later(DEADLINE + 15 * 60 + 5));
    for (const past of [[requested()], open, [...open, begun(), notTaken('unknown')]])
      next(...past)
        .when(later(DEADLINE))
        .then([send({ type: 'time_out' })], later(DEADLINE + 5));
  });
});
