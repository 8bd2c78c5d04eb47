/** Runs waves, several at once, and compares each with the ledger. */

import type { HoldScene } from './scene.ts';
import { type RequestOutcome, sleep, type Wave } from './wave.ts';
import { LedgerReader, type WaveLedger } from './wave-ledger.ts';

/** As many as two cores carry without slowing the responses: see `slowness`. */
const WAVES_AT_ONCE = Number(process.env.WAVES_AT_ONCE ?? 14);
/** Time between the starts of two waves, so that they do not all arrive at once. */
const START_INTERVAL_MS = 1_000;
/** The holds of a killed gateway end within this time. */
const SETTLED_WITHIN_MS = 45_000;
const POLL_INTERVAL_MS = 100;

export interface WaveOutcome extends WaveLedger {
  readonly wave: Wave;
  readonly fundsUsd: number;
  readonly requests: readonly RequestOutcome[];
  /** What is still held after all requests have ended and the sweep has run, and the balance then. */
  readonly heldUsd: number;
  readonly balanceUsd: number;
}

interface EndedWave extends Omit<WaveOutcome, keyof WaveLedger> {
  readonly startedAt: Date;
  readonly endedAt: Date;
}

/** Something that happens during a wave, such as a kill. */
export type Disturbance = (scene: HoldScene, wave: Wave) => Promise<void>;

/** Runs the waves, and returns their outcomes in the same order. */
export async function runWaves(
  scene: HoldScene,
  waves: readonly Wave[],
  { disturb, atOnce = WAVES_AT_ONCE }: { readonly disturb?: Disturbance; readonly atOnce?: number } = {},
): Promise<readonly WaveOutcome[]> {
  const ended: EndedWave[] = [];
  let next = 0;
  const runNext = async (delayMs: number) => {
    await sleep(delayMs);
    for (let i = next++; i < waves.length; i = next++) ended[i] = await runWave(scene, waves[i] as Wave, disturb);
  };
  await Promise.all(Array.from({ length: atOnce }, (_, i) => runNext(i * START_INTERVAL_MS)));
  const ledger = await LedgerReader.read(scene.store, scene.cluster.sandbox);
  return ended.map(({ startedAt, endedAt, ...outcome }) => {
    const requestIds = outcome.requests.flatMap(({ requestId }) => requestId ?? []);
    const { name, fields } = outcome.wave;
    const searches = atOnce === 1 && fields?.tools !== undefined;
    return { ...outcome, ...ledger.compare({ name, startedAt, endedAt, requestIds, searches }) };
  });
}

async function runWave(scene: HoldScene, wave: Wave, disturb: Disturbance | undefined): Promise<EndedWave> {
  const model = await scene.getModel(wave);
  const priceUsd = await scene.priceResponse(wave);
  const { customer, fundsUsd } = await scene.createPayer(wave.affordableCount * priceUsd, wave.isCapped);
  const startedAt = new Date();
  const [requests] = await Promise.all([scene.sendFrom(wave, model, customer), disturb?.(scene, wave)]);
  const deadline = performance.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const { balance, held_usd: heldUsd } = await scene.fetchBalance(customer);
    if (heldUsd === 0 || performance.now() > deadline)
      return { wave, fundsUsd, requests, heldUsd, balanceUsd: balance, startedAt, endedAt: new Date() };
    await sleep(POLL_INTERVAL_MS);
  }
}
