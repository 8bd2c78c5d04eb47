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
  const { input = 0, cacheWrite = 0, cacheWriteHour = 0 } = usage;
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite + cacheWriteHour,
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWriteHour },
    cache_read_input_tokens: getQuantity('cacheRead', usage),
  };
}
