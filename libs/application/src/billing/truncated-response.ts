/** Bills a response of which the hold covers only a part. */
import { getQuantity, type Usage } from '#domain';
import type { FailureCode } from '../errors.ts';
import type { Purchase } from './purchase.ts';
import type { ReportedBill } from './reported-bill.ts';

export interface TruncatedResponse {
  /** What the provider invoices. */
  readonly usage: Usage;
  /** The provider did not report this usage. */
  readonly estimated: boolean;
  /** Output tokens that the hold covers. */
  readonly coveredTokens: number;
  /** Why the operator absorbs the rest of the output. */
  readonly absorbed: FailureCode;
  readonly vendorId: string | undefined;
  readonly reportedBill?: ReportedBill | undefined;
}

/** Charges the covered output with the complete input. The rest of the output is a cost that the operator absorbs. */
export async function billTruncatedResponse(purchase: Purchase, truncated: TruncatedResponse): Promise<void> {
  const { usage, estimated, coveredTokens, absorbed, vendorId, reportedBill } = truncated;
  const { output = 0, reasoning = 0 } = usage;
  const paidOutput = Math.min(output, coveredTokens);
  const paidReasoning = Math.min(reasoning, coveredTokens - paidOutput);
  const paid = { ...usage, output: paidOutput, reasoning: paidReasoning };
  const isCovered = paidOutput === output && paidReasoning === reasoning;
  const result = {
    usage: estimated ? undefined : paid,
    getDeliveredText: () => '',
    vendorId,
    reportedBill: isCovered ? reportedBill : undefined, // otherwise the reported cost is that of both items together
  };
  await purchase.billCall({ estimateUsage: async () => paid }, result);
  if (isCovered) return;
  purchase.billUsage({
    usage: { output: output - paidOutput, reasoning: reasoning - paidReasoning },
    terms: { inputTokens: getQuantity('input', usage) }, // the price of the output may depend on it
    estimated,
    absorbed,
    ...(vendorId === undefined ? {} : { vendorId }),
  });
}
