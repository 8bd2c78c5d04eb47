/** Prints what a load has shown, and what it cost. */
import type { Latency, SteadyLoad } from './load.ts';
import type { RollingScene } from './scene.ts';

const MAX_PRINTED_FAILURES = 20;

const formatLatency = ({ p50Ms, p99Ms }: Latency) => `p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`;

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/**
 * Waits until nothing is held, and prints what the load has shown.
 * @param otherIds the ids of charged requests besides those of the load
 * @returns whether each request was served, and charged once by its reported usage
 */
export async function reportLoad(
  scene: RollingScene,
  load: SteadyLoad,
  otherIds: readonly string[] = [],
): Promise<boolean> {
  const { sentCount, failures, completedIds } = load;
  const perSecond = (sentCount / load.seconds).toFixed(1);
  print(`${sentCount} requests in ${load.seconds.toFixed(0)} s (${perSecond}/s), ${failures.length} failed`);
  print(`short responses: ${formatLatency(load.fullLatency)}`);
  print(`first byte of long streams: ${formatLatency(load.firstByteLatency)}`);
  for (const { sentAfterS, reason } of failures.slice(0, MAX_PRINTED_FAILURES))
    print(`FAILED after ${sentAfterS.toFixed(1)} s: ${reason}`);
  if (failures.length > 0) for (const line of scene.listProxyErrors().slice(0, MAX_PRINTED_FAILURES)) print(line);
  const finding = await scene.compareCharges([...completedIds, ...otherIds]);
  print(
    `${finding.charges} charges, ${finding.mischarged} responses not charged exactly once, ${finding.uncharged} holds without a charge, ${finding.estimated} estimated, ${finding.heldUsd} USD still held`,
  );
  print(`the ledger has ${finding.bookedUsd} USD of costs, the bill of the providers ${finding.billedUsd} USD`);
  print(finding.drift);
  return (
    failures.length === 0 &&
    finding.charges === sentCount + otherIds.length &&
    finding.mischarged + finding.uncharged + finding.estimated + finding.heldUsd === 0 &&
    finding.isBillBooked &&
    finding.hasVerified
  );
}
