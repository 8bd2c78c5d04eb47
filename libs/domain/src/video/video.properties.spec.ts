import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type SubmissionResult, type VideoCommand, type VideoEvent, videoDecider, videoWorkflow } from '#domain';
import { fold, parseUsd, Rejection } from '#kernel';

const START = Date.parse('2026-11-20T12:00:00.000Z');
const DEADLINE_S = 60;
const instant = (second: number) => new Date(START + second * 1_000).toISOString();

const endpoint = (creditor: string) => ({
  of: 'v',
  provider: creditor,
  creditor,
  model: 'theirs',
  usage: { videoSecond: 5 },
  prices: [
    { unit: 'videoSecond', per: 1, cost: parseUsd('0.07').toString(), price: parseUsd('0.0805').toString() },
  ] as const,
});
const requested: VideoEvent = {
  type: 'VideoRequested',
  data: {
    accountId: 'a',
    keyId: null,
    terms: {},
    priceList: 'p',
    result: 'gen',
    deadline: instant(DEADLINE_S),
    query: { model: 'v', type: 'video_generation', source: 'api', online: false, free: false },
    hold: { holdId: 'h', payer: 'account-a', amount: parseUsd('0.4025').toString() },
    endpoints: [endpoint('one'), endpoint('other')],
    request: { file: 'req', sha256: 'ab' },
    at: instant(0),
  },
};

const second = fc.integer({ min: 0, max: 2 * DEADLINE_S });
const submission = fc.integer({ min: 1, max: 4 });
const at = second.map(instant);
const answer: fc.Arbitrary<SubmissionResult> = fc.oneof(
  fc.constant<SubmissionResult>({ isAccepted: true, reference: 'r', vendorId: 'i', hooked: false }),
  fc
    .record({ isRejected: fc.boolean(), isRetryable: fc.boolean() })
    .map((each): SubmissionResult => ({ isAccepted: false, code: 'rate_limited', reason: 'so', ...each })),
);
const command: fc.Arbitrary<VideoCommand> = fc.oneof(
  at.map((each): VideoCommand => ({ type: 'RecordHeld', data: { at: each } })),
  fc
    .record({ submission, token: fc.integer({ min: 1, max: 3 }), at })
    .map((data): VideoCommand => ({ type: 'BeginSubmission', data })),
  fc
    .record({
      submission,
      outcome: fc.oneof(
        answer.map((each) => ({ isKnown: true, result: each }) as const),
        fc.constant({ isKnown: false, reason: 'so' } as const),
      ),
      at,
    })
    .map((data): VideoCommand => ({ type: 'EndSubmission', data })),
  at.map((each): VideoCommand => ({ type: 'RecordMade', data: { at: each } })),
  fc
    .record({ fetch: fc.integer({ min: 1, max: 4 }), final: fc.boolean(), why: fc.string(), at })
    .map((data): VideoCommand => ({ type: 'RecordFetchFailure', data })),
  at.map((each): VideoCommand => ({ type: 'RecordStored', data: { mediaType: 'video/mp4', size: 1, at: each } })),
  at.map((each): VideoCommand => ({ type: 'RecordSettled', data: { at: each } })),
  at.map((each): VideoCommand => ({ type: 'RecordReleased', data: { at: each } })),
  at.map((each): VideoCommand => ({ type: 'TimeOutVideo', data: { at: each } })),
  fc
    .record({
      phase: fc.constantFrom('requested' as const, 'held' as const, 'submitted' as const),
      invoiced: fc.constantFrom('no' as const, 'yes' as const, 'perhaps' as const),
      at,
    })
    .map((data): VideoCommand => ({ type: 'FailVideo', data: { errorCode: 'e', message: 'm', ...data } })),
  at.map((each): VideoCommand => ({ type: 'CloseVideoCost', data: { cost: parseUsd('0.35'), at: each } })),
);

/** Returns the events of a requested video after these commands. Rejected commands have none. */
function lived(commands: readonly VideoCommand[]): readonly VideoEvent[] {
  const facts: VideoEvent[] = [requested];
  let state = fold(videoDecider, videoDecider.getInitialState(), facts);
  for (const each of commands) {
    try {
      const events = videoDecider.decide(each, state);
      facts.push(...events);
      state = fold(videoDecider, state, events);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
    }
  }
  return facts;
}

const lives = fc.array(command, { maxLength: 60 }).map(lived);
const count = (facts: readonly VideoEvent[], ...types: readonly VideoEvent['type'][]) =>
  facts.filter(({ type }) => types.includes(type)).length;

test('a video is stored or fails at most once, is settled only if it is stored, and released only if it failed', () => {
  fc.assert(
    fc.property(lives, (facts) => {
      expect(count(facts, 'VideoStored', 'VideoFailed')).toBeLessThanOrEqual(1);
      expect(count(facts, 'VideoSettled')).toBeLessThanOrEqual(count(facts, 'VideoStored'));
      expect(count(facts, 'VideoReleased')).toBeLessThanOrEqual(count(facts, 'VideoFailed'));
    }),
  );
});

test('a job is not submitted again if a provider has accepted it or may have accepted it', () => {
  fc.assert(
    fc.property(lives, (facts) => {
      let free = true;
      for (const { type, data } of facts) {
        if (type === 'VideoSubmissionBegun') {
          expect(free).toBe(true);
          free = false;
        }
        if (type === 'VideoSubmissionFailed') free = data.outcome !== 'unknown';
      }
      expect(count(facts, 'VideoSubmitted')).toBeLessThanOrEqual(1);
    }),
  );
});

test('a failed video has a cost only if a provider may have the job, and an absorbed cost if it was made', () => {
  fc.assert(
    fc.property(lives, (facts) => {
      const failed = facts.find((fact) => fact.type === 'VideoFailed');
      if (!failed) return;
      const { absorbed, open } = failed.data;
      expect(absorbed === undefined || open === undefined).toBe(true);
      const handedOver = count(facts, 'VideoSubmitted') > 0 || facts.some(isUnknown);
      if (!handedOver) expect(absorbed ?? open).toBeUndefined();
      if (count(facts, 'VideoMade') > 0) expect(absorbed).toBeDefined();
      expect(count(facts, 'VideoCostClosed')).toBeLessThanOrEqual(open ? 1 : 0);
    }),
  );
});

function isUnknown({ type, data }: VideoEvent): boolean {
  return type === 'VideoSubmissionFailed' && data.outcome === 'unknown';
}

test('the plan of a video that has not ended has steps or a due time', () => {
  fc.assert(
    fc.property(lives, second, (facts, now) => {
      const state = fold(videoDecider, videoDecider.getInitialState(), facts);
      const { steps, dueAt } = videoWorkflow.plan(state, instant(now));
      const isOver = state.phase === 'settled' || state.phase === 'released';
      expect(steps.length > 0 || dueAt !== undefined).toBe(!isOver);
      if (dueAt !== undefined && steps.length === 0) expect(dueAt > instant(now)).toBe(true);
    }),
  );
});
