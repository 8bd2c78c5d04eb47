import { StoreUnavailableError, withTimeout } from '#kernel';
import type { Chance } from './chance.ts';
import type { Outage } from './faulty-event-store.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedTime } from './simulated-time.ts';

const NETWORK_MS = { min: 0.2, max: 5 };
/** How long a caller waits for a response. What it has sent by then may still be done later. */
const RESPONSE_TIMEOUT_MS = 5_000;

export interface RemoteOptions {
  readonly time: SimulatedTime;
  readonly chance: Chance;
  /** Returns how often calls fail now, from 0 to 1: half of them before they are done, half after. */
  getFailureRate(): number;
  readonly outages: readonly Outage[];
}

/**
 * Returns an object with the asynchronous methods of `target` as a process reaches them over a network that may fail.
 * @param name of the target; with the number of the call it determines what happens to the call
 */
export function createRemote<T extends object>(
  name: string,
  target: T,
  process: SimulatedProcess,
  { time, chance, getFailureRate, outages }: RemoteOptions,
): T {
  let calls = 0;
  const call = async (method: (...args: unknown[]) => Promise<unknown>, args: unknown[]): Promise<unknown> => {
    const label = `${process.name} ${name} ${calls++}`;
    const delay = (part: string) => chance.between(NETWORK_MS.min, NETWORK_MS.max, `${label} ${part}`);
    const fate = chance.choose(label);
    const rate = getFailureRate();
    const response = time.wait(delay('request')).then(async () => {
      const outage = outages.find(({ fromMs, untilMs }) => fromMs <= time.nowMs && time.nowMs < untilMs);
      if (outage?.mode === 'frozen') await time.wait(outage.untilMs - time.nowMs);
      if (fate < rate / 2 || outage?.mode === 'refusing') throw new StoreUnavailableError(`${name} is unavailable`);
      const result = await method.apply(target, args);
      if (fate < rate) throw new StoreUnavailableError(`the response of ${name} is lost`);
      return result;
    });
    const first = withTimeout(time, RESPONSE_TIMEOUT_MS, response, () => {
      throw new StoreUnavailableError(`${name} does not respond`);
    });
    return process.receive(first, delay('response'));
  };
  return new Proxy(target, {
    get(object, property, receiver) {
      const value: unknown = Reflect.get(object, property, receiver);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => call(value as (...args: unknown[]) => Promise<unknown>, args);
    },
  });
}
