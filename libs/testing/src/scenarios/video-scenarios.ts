/** Videos, up to any point of their lives, with what their account hears of them. */
import fc from 'fast-check';
import type { AccountCommand, SubmissionResult, VideoCommand, VideoRequested, VideoState } from '#domain';
import { parseUsd } from '#kernel';

export interface VideoLife {
  readonly submission: 'taken' | 'busy' | 'unknown';
  readonly end: 'made' | 'refused' | 'invoiced' | 'perhaps invoiced' | 'lost' | 'late';
  readonly closed: boolean;
  /** How much of it happens. */
  readonly steps: number;
}

export const videoLives: fc.Arbitrary<VideoLife> = fc.record({
  submission: fc.constantFrom('taken', 'taken', 'busy', 'unknown'),
  end: fc.constantFrom('made', 'made', 'refused', 'invoiced', 'perhaps invoiced', 'lost', 'late'),
  closed: fc.boolean(),
  steps: fc.integer({ min: 1, max: 20 }),
});

type Told = { readonly account: AccountCommand } | { readonly video: VideoCommand };

const amount = parseUsd('0.3');
const prices = [
  { unit: 'clip', per: 1, cost: parseUsd('0.2').toString(), price: parseUsd('0.25').toString() },
] as const;
const sold = { of: 'v', usage: { clip: 1 }, prices, model: 'theirs' };
const query = { model: 'v', type: 'video_generation', source: 'api', online: false, free: false } as const;

interface Asked {
  readonly holdId: string;
  readonly jobId: string;
  readonly accountId: string;
  readonly at: string;
  readonly deadline: string;
}

/** What happens one after the other; what the account is told at the end follows from the video as it is then. */
function videoLife({ holdId, jobId, accountId, at, deadline }: Asked, life: VideoLife): readonly Told[] {
  const hold = { holdId, payer: `account-${accountId}`, amount: amount.toString() };
  const request: VideoRequested['data'] = {
    ...{ accountId, keyId: null, query, hold, terms: {}, priceList: 'v1', deadline, at },
    endpoints: ['one', 'other'].map((creditor) => ({ ...sold, provider: creditor, creditor })),
    ...{ request: { file: 'req', sha256: 'ab' }, result: 'gen' },
  };
  const terms = { holdId, keyId: null, minAmount: amount, maxAmount: amount, owner: 'gateway-1', query };
  const steps: readonly Told[] = [
    { account: { type: 'HoldFunds', data: { ...terms, expiresAt: deadline, at } } },
    { video: { type: 'RequestVideo', data: request } },
    { account: { type: 'KeepHold', data: { holdId, owner: `video-${jobId}`, at } } },
    { video: { type: 'RecordHeld', data: { at } } },
    ...submissions(life, at).map((video) => ({ video })),
    ...endings(life, at, deadline).map((video) => ({ video })),
  ];
  return steps.slice(0, life.steps);
}

function submissions({ submission }: VideoLife, at: string): readonly VideoCommand[] {
  const begin = (nr: number): VideoCommand => ({ type: 'BeginSubmission', data: { submission: nr, token: nr, at } });
  const end = (nr: number, answer: SubmissionResult): VideoCommand => ({
    type: 'EndSubmission',
    data: { submission: nr, outcome: { isKnown: true, result: answer }, at },
  });
  const taken = { isAccepted: true, reference: 'r', vendorId: 'i', hooked: false } as const;
  const busy = {
    isAccepted: false,
    isRejected: false,
    isRetryable: true,
    code: 'rate_limited',
    reason: 'busy',
    status: 429,
  } as const;
  if (submission === 'taken') return [begin(1), end(1, taken)];
  if (submission === 'busy') return [begin(1), end(1, busy), begin(2), end(2, taken)];
  const outcome = { isKnown: false, reason: 'it broke off' } as const;
  return [begin(1), { type: 'EndSubmission', data: { submission: 1, outcome, at } }];
}

function endings({ end, closed }: VideoLife, at: string, deadline: string): readonly VideoCommand[] {
  const fail = (invoiced: 'no' | 'yes' | 'perhaps'): VideoCommand => ({
    type: 'FailVideo',
    data: { phase: 'submitted', errorCode: 'upstream_error', message: 'It failed', invoiced, at },
  });
  const lost = [1, 2, 3].map(
    (fetch): VideoCommand => ({
      type: 'RecordFetchFailure',
      data: { fetch, final: true, why: 'It is gone', at },
    }),
  );
  const made: VideoCommand = { type: 'RecordMade', data: { at } };
  const ways: Readonly<Record<VideoLife['end'], readonly VideoCommand[]>> = {
    made: [made, { type: 'RecordStored', data: { mediaType: 'video/mp4', size: 9, at } }],
    refused: [fail('no')],
    invoiced: [fail('yes')],
    'perhaps invoiced': [fail('perhaps')],
    lost: [made, ...lost],
    late: [{ type: 'TimeOutVideo', data: { at: deadline } }],
  };
  const close: VideoCommand = { type: 'CloseVideoCost', data: { cost: parseUsd('0.2'), at: deadline } };
  return [...ways[end], ...(closed ? [close] : [])];
}

/** How a video that has ended ends its hold, and then says so. */
function endOfHold({ phase, request, stored, failure, attempts }: VideoState, at: string): readonly Told[] {
  const { holdId = '' } = request?.hold ?? {};
  if (phase === 'stored' && stored)
    return [
      { account: { type: 'SettleHold', data: { holdId, charge: stored.charge, at } } },
      { video: { type: 'RecordSettled', data: { at } } },
    ];
  if (phase !== 'failed' || !failure) return [];
  const { errorCode, message: reason, absorbed } = failure;
  const why = { errorCode, reason, attempts, ...(absorbed ? { absorbed } : {}) };
  return [
    { account: { type: 'ReleaseHold', data: { holdId, ...why, at } } },
    { video: { type: 'RecordReleased', data: { at } } },
  ];
}

interface Story {
  readonly videos: ReadonlyMap<string, VideoState>;
  videosAsked: number;
  getInstant(): string;
  video(id: string, command: VideoCommand): void;
  account(nr: number, command: AccountCommand): void;
}

/** A video that an account asks for, up to some point. */
export function liveVideo(
  story: Story,
  { nr, accountId, deadline }: { readonly nr: number; readonly accountId: string; readonly deadline: string },
  life: VideoLife,
): void {
  const jobId = `v${story.videosAsked++}`;
  const tell = (told: Told) => ('video' in told ? story.video(jobId, told.video) : story.account(nr, told.account));
  const asked = { holdId: `hold of ${jobId}`, jobId, accountId, at: story.getInstant(), deadline };
  for (const told of videoLife(asked, life)) tell(told);
  const video = story.videos.get(jobId);
  if (video && life.steps % 4 > 0) for (const told of endOfHold(video, story.getInstant())) tell(told);
}
