/** How what takes a payment reports it to those who wait for it. Asked, it always returns the true state. */
import { Refusal } from './router.ts';

/**
 * Subscriptions and web hooks say it once, twice, in the wrong order, never, or only somebody else says it, who cannot sign.
 */
const REPORTS = ['once', 'twice', 'reordered', 'never', 'forged'] as const;

export type Report = (typeof REPORTS)[number];

/** @throws Refusal */
export function reportIn(value: unknown): Report {
  const report = value === undefined ? 'once' : REPORTS.find((each) => each === value);
  if (report === undefined) throw new Refusal(400, { error: `"report" must be one of ${REPORTS.join(', ')}` });
  return report;
}

/** How often a subscription says it, which has neither an order nor a signature. */
export function timesReported(report: Report): number {
  if (report === 'twice') return 2;
  return report === 'never' || report === 'forged' ? 0 : 1;
}
