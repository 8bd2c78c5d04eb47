import { idempotencyStoreContract } from '#testing';
import { MemoryIdempotencyStore } from './memory-idempotency-store.ts';

idempotencyStoreContract('the memory store', async () => {
  const nowMs = 1_000_000;
  const store = new MemoryIdempotencyStore(() => nowMs, 60_000);
  const getRow = ({ payer, key }: { readonly payer: string; readonly key: string }) =>
    store.rows.get(`${payer} ${key}`);
  return {
    store,
    getLeaseSeconds: async (claim) => ((getRow(claim)?.leasedUntilMs ?? 0) - nowMs) / 1_000,
    expire: async (claim) => {
      const row = getRow(claim);
      if (row) row.expiresAtMs = nowMs;
    },
    close: async () => {},
  };
});
