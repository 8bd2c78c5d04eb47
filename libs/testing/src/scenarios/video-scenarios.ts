/** Runs video jobs up to any point of their life cycle, with the commands to their accounts. */
import fc from 'fast-check';
import type { AccountCommand, SubmissionResult, VideoCommand, VideoRequested, VideoState } from '#domain';
import { parseUsd } from '#kernel';

export interface VideoScenario {
  readonly submission: 'accepted' | 'busy' | 'unknown';
  readonly end: 'generated' | 'rejected' | 'invoiced' | 'perhaps invoiced' | 'lost' | 'timed_out';
  readonly closed: boolean;
  /** Maximum number of commands that are executed, without those that end the hold. */
  readonly steps: number;
}

export const videoScenarios: fc.Arbitrary<VideoScenario> = fc.record({
  submission: fc.constantFrom('accepted', 'accepted', 'busy', 'unknown'),
  end: fc.constantFrom('generated', 'generated', 'rejected', 'invoiced', 'perhaps invoiced', 'lost', 'timed_out'),
  closed: fc.boolean(),
  steps: fc.integer({ min: 1, max: 20 }),
});

type ScenarioCommand = { readonly account: AccountCommand } | { readonly video: VideoCommand };

const amount = parseUsd('0.3');
const prices = [
  { unit: 'clip', per: 1, cost: parseUsd('0.2').toString(), price: parseUsd('0.25').toString() },
] as const;
const sold = { of: 'v', usage: { clip: 1 }, prices, model: 'theirs' };
const query = { model: 'v', type: 'video_generation', source: 'api', online: false, free: false } as const;

interface VideoScenarioParams {
  readonly holdId: string;
  readonly jobId: string;
  readonly accountId: string;
  readonly at: string;
  readonly deadline: string;
}

/**
 * Returns the commands to execute, without those that end the hold: these depend on the state of the video.
 */
function listCommands(
  { holdId, jobId, accountId, at, deadline }: VideoScenarioParams,
  scenario: VideoScenario,
): readonly ScenarioCommand[] {
  const hold = { holdId, payer: `account-${accountId}`, amount: amount.toString() };
  const request: VideoRequested['data'] = {
    accountId,
    keyId: null,
    query,
    hold,
    terms: {},
    priceList: 'v1',
    deadline,
    at,
    endpoints: ['one', 'other'].map((creditor) => ({ ...sold, provider: creditor, creditor })),
    request: { file: 'req', sha256: 'ab' },
    result: 'gen',
  };
  const terms = { holdId, keyId: null, minAmount: amount, maxAmount: amount, owner: 'gateway-1', query };
  const steps: readonly ScenarioCommand[] = [
    { account: { type: 'HoldFunds', data: { ...terms, expiresAt: deadline, at } } },
    { video: { type: 'RequestVideo', data: request } },
    { account: { type: 'KeepHold', data: { holdId, owner: `video-${jobId}`, at } } },
    { video: { type: 'RecordHeld', data: { at } } },
    ...listSubmissionCommands(scenario, at).map((video) => ({ video })),
    ...listEndCommands(scenario, at, deadline).map((video) => ({ video })),
  ];
  return steps.slice(0, scenario.steps);
}

function listSubmissionCommands({ submission }: VideoScenario, at: string): readonly VideoCommand[] {
  const begin = (submissionNumber: number): VideoCommand => ({
    type: 'BeginSubmission',
    data: { submission: submissionNumber, token: submissionNumber, at },
  });
  const end = (submissionNumber: number, result: SubmissionResult): VideoCommand => ({
    type: 'EndSubmission',
    data: { submission: submissionNumber, outcome: { isKnown: true, result }, at },
  });
  const accepted = { isAccepted: true, reference: 'r', vendorId: 'i', hooked: false } as const;
  const busy = {
    isAccepted: false,
    isRejected: false,
    isRetryable: true,
    code: 'rate_limited',
    reason: 'busy',
    status: 429,
  } as const;
  if (submission === 'accepted') return [begin(1), end(1, accepted)];
  if (submission === 'busy') return [begin(1), end(1, busy), begin(2), end(2, accepted)];
  const outcome = { isKnown: false, reason: 'it broke off' } as const;
  return [begin(1), { type: 'EndSubmission', data: { submission: 1, outcome, at } }];
}

function listEndCommands({ end, closed }: VideoScenario, at: string, deadline: string): readonly VideoCommand[] {
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
  const generated: VideoCommand = { type: 'RecordMade', data: { at } };
  const endCommands: Readonly<Record<VideoScenario['end'], readonly VideoCommand[]>> = {
    generated: [generated, { type: 'RecordStored', data: { mediaType: 'video/mp4', size: 9, at } }],
    rejected: [fail('no')],
    invoiced: [fail('yes')],
    'perhaps invoiced': [fail('perhaps')],
    lost: [generated, ...lost],
    timed_out: [{ type: 'TimeOutVideo', data: { at: deadline } }],
  };
  const close: VideoCommand = { type: 'CloseVideoCost', data: { cost: parseUsd('0.2'), at: deadline } };
  return [...endCommands[end], ...(closed ? [close] : [])];
}

/** Returns the commands that end the hold of an ended video, and record the end of the hold. */
function listHoldCommands(
  { phase, request, stored, failure, attempts }: VideoState,
  at: string,
): readonly ScenarioCommand[] {
  const { holdId = '' } = request?.hold ?? {};
  if (phase === 'stored' && stored)
    return [
      { account: { type: 'SettleHold', data: { holdId, charge: stored.charge, at } } },
      { video: { type: 'RecordSettled', data: { at } } },
    ];
  if (phase !== 'failed' || !failure) return [];
  const { errorCode, message: reason, absorbed } = failure;
  const failureFields = { errorCode, reason, attempts, ...(absorbed ? { absorbed } : {}) };
  return [
    { account: { type: 'ReleaseHold', data: { holdId, ...failureFields, at } } },
    { video: { type: 'RecordReleased', data: { at } } },
  ];
}

interface VideoHistory {
  readonly videos: ReadonlyMap<string, VideoState>;
  videosRequested: number;
  getInstant(): string;
  runVideoCommand(id: string, command: VideoCommand): void;
  runAccountCommand(accountNumber: number, command: AccountCommand): void;
}

/** Runs a video job of an account up to some point. */
export function runVideoScenario(
  history: VideoHistory,
  {
    accountNumber,
    accountId,
    deadline,
  }: { readonly accountNumber: number; readonly accountId: string; readonly deadline: string },
  scenario: VideoScenario,
): void {
  const jobId = `v${history.videosRequested++}`;
  const execute = (command: ScenarioCommand) =>
    'video' in command
      ? history.runVideoCommand(jobId, command.video)
      : history.runAccountCommand(accountNumber, command.account);
  const params = { holdId: `hold of ${jobId}`, jobId, accountId, at: history.getInstant(), deadline };
  for (const command of listCommands(params, scenario)) execute(command);
  const video = history.videos.get(jobId);
  if (video && scenario.steps % 4 > 0)
    for (const command of listHoldCommands(video, history.getInstant())) execute(command);
}
