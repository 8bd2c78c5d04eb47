/** Credits and debits by commands of the ledger, some of which are killed and repeated. */
import { money, type PicoUsd } from '#kernel';
import type { CommandResult, ProofCluster } from '../../cluster.ts';

export const ACCOUNT = 'team-proof';
/** Commands that run at the same time. */
const CONCURRENCY = 3;
/** After so many kills, a command of this id is left to end. */
const MAX_KILLS = 3;
/** Bounds the random time after which a command is killed. Most of it passes before the append. */
const KILLED_WITHIN_MS = 4_000;
/** A command with the same id is sent again after the first one or at the same time, or repeats killed ones. */
const REPETITIONS = ['after', 'at once', 'killed'] as const;

export interface Adjustment {
  readonly id: string;
  readonly verb: 'credit' | 'debit';
  readonly usd: string;
  readonly repetition: (typeof REPETITIONS)[number];
}

export interface AdjustmentCounts {
  commands: number;
  killed: number;
  /** Commands that were killed after they had reported their adjustment. */
  killedAfterOutput: number;
  /** Commands that reported that an earlier one had booked their id. */
  repeated: number;
  /** Commands that ended in an unexpected way. */
  readonly failures: string[];
}

/** Returns credits and debits with different amounts, each of them with every kind of repetition. */
export function planAdjustments(count: number): readonly Adjustment[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `adjustment-${i + 1}`,
    verb: i % 2 === 0 ? 'credit' : 'debit',
    usd: i % 2 === 0 ? `2.00000000000${i % 10}` : `1.0000000000${i}`,
    repetition: REPETITIONS[i % REPETITIONS.length] as Adjustment['repetition'],
  }));
}

/** Returns by how much an adjustment changes the balance. */
export function calculateChange({ verb, usd }: Pick<Adjustment, 'verb' | 'usd'>): PicoUsd {
  const amount = money.parseUsd(usd);
  return verb === 'credit' ? amount : money.negate(amount);
}

/** Runs the commands of all adjustments, several at a time. */
export async function runAdjustments(
  cluster: ProofCluster,
  adjustments: readonly Adjustment[],
): Promise<AdjustmentCounts> {
  const counts: AdjustmentCounts = { commands: 0, killed: 0, killedAfterOutput: 0, repeated: 0, failures: [] };
  const pending = [...adjustments];
  const runPending = async () => {
    for (let next = pending.shift(); next; next = pending.shift()) await runAdjustment(cluster, next, counts);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, runPending));
  return counts;
}

async function runAdjustment(cluster: ProofCluster, adjustment: Adjustment, counts: AdjustmentCounts): Promise<void> {
  const { id, repetition } = adjustment;
  const results: CommandResult[] = [];
  if (repetition === 'at once')
    results.push(...(await Promise.all([adjust(cluster, adjustment), adjust(cluster, adjustment)])));
  for (let kills = 0; repetition === 'killed' && kills < MAX_KILLS; kills++) {
    const result = await adjustAndKill(cluster, adjustment, kills % 2 === 0 ? 'at random' : 'after output');
    counts.commands++;
    if (!result.isKilled) {
      results.push(result);
      break;
    }
    counts.killed++;
    if (result.output !== '') counts.killedAfterOutput++;
  }
  while (results.length < 2) results.push(await adjust(cluster, adjustment));
  counts.commands += results.length;
  const repeated = results.filter(({ output }) => output.includes(` before, as ${id}\n`)).length;
  counts.repeated += repeated;
  for (const { code, output } of results)
    if (code !== 0 || !output.includes(`, as ${id}\n`)) counts.failures.push(`${id} ended with ${code}: ${output}`);
  if (results.length - repeated > 1) counts.failures.push(`${id} was reported as new more than once`);
}

export function adjust(
  cluster: ProofCluster,
  adjustment: Pick<Adjustment, 'id' | 'verb' | 'usd'>,
): Promise<CommandResult> {
  return cluster.runLedger(...toCommand(adjustment));
}

/** Kills a command at a random time, or as soon as it reports its adjustment, unless it ends before. */
async function adjustAndKill(
  cluster: ProofCluster,
  adjustment: Adjustment,
  time: 'at random' | 'after output',
): Promise<CommandResult & { readonly isKilled: boolean }> {
  const { process, result } = cluster.startLedger(...toCommand(adjustment));
  const kill = () => void process.kill('SIGKILL');
  if (time === 'after output') process.stdout?.once('data', kill);
  const timer = time === 'at random' ? setTimeout(kill, Math.random() * KILLED_WITHIN_MS) : undefined;
  const ended = await result;
  clearTimeout(timer);
  return { ...ended, isKilled: process.signalCode !== null };
}

function toCommand({ id, verb, usd }: Pick<Adjustment, 'id' | 'verb' | 'usd'>): string[] {
  return [verb, ACCOUNT, '--usd', usd, '--reason', 'Proof of funding', '--id', id];
}
