import { createStreams } from '#application';
import { type Foundation, StartError } from '#foundation';
import { formatUsd, money, NO_SNAPSHOTS, type PicoUsd, parseUsd, ZERO_USD } from '#kernel';
import { openPool } from '#postgres';
import { READ_MODEL_CONNECTION_OPTIONS, readVideoJobs, type VideoJobView } from '#projections';
import { runAsOperator } from './run-as-operator.ts';

type Print = (line: string) => void;

/**
 * Lists running video jobs, and failed ones that a provider may still invoice. The operator checks the provider's
 * invoice for a failed job and records its cost with `jobs close`.
 */
export async function printJobs({ databaseUrl }: Pick<Foundation, 'databaseUrl'>, print: Print): Promise<void> {
  const pool = openPool({
    connectionString: databaseUrl,
    name: 'ledger',
    max: 1,
    options: READ_MODEL_CONNECTION_OPTIONS,
  });
  try {
    const jobs = await readVideoJobs(pool);
    const [running, open] = [
      jobs.filter(({ state }) => state !== 'open'),
      jobs.filter(({ state }) => state === 'open'),
    ];
    print(
      `${running.length} jobs are running, ${formatUsd(sumAmounts(running.map(({ held }) => held)))} USD are held for them`,
    );
    for (const job of running) print(formatRunningJob(job));
    const maxCost = sumAmounts(open.map(({ openCost = ZERO_USD }) => openCost));
    print(`${open.length} costs are open, ${formatUsd(maxCost)} USD at most`);
    for (const job of open) print(formatOpenCost(job));
  } finally {
    await pool.end();
  }
}

/** Records the cost that a provider invoiced for a failed job; the operator absorbs it. @param cost USD, or `none` */
export async function closeJobCost(foundation: Foundation, jobId: string, cost: string, print: Print): Promise<void> {
  const { store, runtime } = foundation;
  const amount = parseCost(cost);
  const { videos } = createStreams(store, NO_SNAPSHOTS, runtime);
  const data = { cost: amount, at: new Date().toISOString() };
  const { events } = await runAsOperator(videos, jobId, { type: 'CloseVideoCost', data }, { context: `: ${jobId}` });
  print(`${jobId}: ${formatUsd(amount)} USD ${events.length > 0 ? 'is recorded as cost' : 'was recorded before'}`);
}

function parseCost(cost: string): PicoUsd {
  if (cost === 'none') return ZERO_USD;
  try {
    const amount = parseUsd(cost);
    if (amount >= 0n) return amount;
    // not a number
  } catch {}
  throw new StartError('--cost must be an amount in USD, such as 3.2, or none.');
}

function sumAmounts(amounts: readonly PicoUsd[]): PicoUsd {
  return money.sum(amounts);
}

function formatRunningJob({
  jobId,
  accountId,
  model,
  state,
  held,
  vendor,
  vendorId,
  requestedAt,
  deadline,
}: VideoJobView) {
  const at = vendor === undefined ? '' : ` at ${vendor}${vendorId === undefined ? '' : ` as ${vendorId}`}`;
  return `${requestedAt}  ${jobId}  ${state}${at}, ${model}, ${formatUsd(held)} USD of ${accountId}, until ${deadline}`;
}

function formatOpenCost({ jobId, model, openCost = ZERO_USD, vendor = '', vendorId, changedAt }: VideoJobView): string {
  const submission = vendorId === undefined ? 'unknown whether the job was accepted' : `as ${vendorId}`;
  return `${changedAt}  ${jobId}  ${formatUsd(openCost)} USD at most to ${vendor} (${submission}), ${model}`;
}
