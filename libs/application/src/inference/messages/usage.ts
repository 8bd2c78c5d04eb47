import { getQuantity, type Usage } from '#domain';
import { toUsdJsonNumber } from '#kernel';
import { toCostDetails } from '../../billing/cost-details.ts';
import type { Receipt } from '../../billing/order.ts';
import type { InputUsage, MessageUsage } from './message-builder.ts';

/** Converts usage and cost to Anthropic's format, in which `input_tokens` excludes cached tokens. */
export function toMessageUsage(receipt: Receipt): MessageUsage {
  const { usage, charged } = receipt;
  return {
    ...toInputUsage(usage),
    output_tokens: getQuantity('output', usage),
    output_tokens_details: { thinking_tokens: getQuantity('reasoning', usage) },
    service_tier: 'standard',
    cost: toUsdJsonNumber(charged),
    cost_details: toCostDetails(receipt, 'others'),
  };
}

export function toInputUsage(usage: Usage): InputUsage {
  return {
    input_tokens: usage.input ?? 0,
    cache_creation_input_tokens: getQuantity('cacheWrite', usage),
    cache_read_input_tokens: getQuantity('cacheRead', usage),
  };
}
