/** How a payment is reported to subscriptions and webhooks. A query always returns its true state. */
import { HttpError } from './router.ts';

/**
 * Subscriptions and webhooks receive the report once, twice or never. With `reordered`, webhooks receive reports out of
 * order, and subscriptions one report. With `forged`, webhooks receive only a report that a third party has signed, and
 * subscriptions none.
 */
const REPORT_MODES = ['once', 'twice', 'reordered', 'never', 'forged'] as const;

export type ReportMode = (typeof REPORT_MODES)[number];

/** @throws HttpError 400 if the value is not a report mode */
export function parseReportMode(value: unknown): ReportMode {
  const report = value === undefined ? 'once' : REPORT_MODES.find((candidate) => candidate === value);
  if (report === undefined) throw new HttpError(400, { error: `"report" must be one of ${REPORT_MODES.join(', ')}` });
  return report;
}

/**
 * Returns how often a subscription reports a payment: once with `reordered`, and never with `forged`, because reports
 * to subscriptions are not signed.
 */
export function countReports(report: ReportMode): number {
  if (report === 'twice') return 2;
  return report === 'never' || report === 'forged' ? 0 : 1;
}
