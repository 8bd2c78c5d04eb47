import type { ApiKeyRecord } from '#domain';
import { toUsdJsonNumber } from '#kernel';

/** Converts a key to the JSON of the API. The secret is included only if it is passed. */
export function toKeyJson(key: ApiKeyRecord, apiKey?: string) {
  return {
    _id: key.keyId,
    name: key.name,
    ...(apiKey === undefined ? {} : { api_key: apiKey }),
    usage_limit_usd: key.limit === null ? null : toUsdJsonNumber(key.limit),
    current_period_usage_usd: toUsdJsonNumber(key.usedInPeriod),
    total_usage_all_time_usd: toUsdJsonNumber(key.usedInAll),
    reset_period: key.resetPeriod,
    reset_at: key.resetAt,
    expire_at: key.expireAt,
    models: key.models,
    blocked: key.blocked,
    metadata: key.metadata,
    dedupe_seconds: key.dedupeSeconds ?? null,
    created_at: key.createdAt,
    updated_at: key.updatedAt,
    deleted_at: key.revokedAt,
  };
}
