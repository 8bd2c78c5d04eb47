/** How what takes a payment reports it to those who wait for it. Asked, it always returns the true state. */
import { HttpError } from './router.ts';

/**
 * Subscriptions and web hooks say it once, twice, in the wrong order, never, or only somebody else says it, who cannot sign.
 */
const REPORT_MODES = ['once', 'twice', 'reordered', 'never', 'forged'] as const;

export type ReportMode = (typeof REPORT_MODES)[number];

/** @throws HttpError */
export function parseReportMode(value: unknown): ReportMode {
  const report = value === undefined ? 'once' : REPORT_MODES.find((candidate) => candidate === value);
  if (report === undefined) throw new HttpError(400, { error: `"report" must be one of ${REPORT_MODES.join(', ')}` });
  return report;
}

/** How often a subscription says it, which has neither an order nor a signature. */
export function countReports(report: ReportMode): number {
  if (report === 'twice') return 2;
  return report === 'never' || report === 'forged' ? 0 : 1;
}
