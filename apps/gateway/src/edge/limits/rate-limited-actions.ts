/** Rate limits of free operations: per network address, per account and per key, depending on the action. */
import type { FastifyRequest } from 'fastify';
import type { RateLimiter } from '#application';
import { toNetwork } from '../network/client-addresses.ts';

export type RateLimitedAction = 'accounts' | 'invoices' | 'wallets' | 'changes';

/** @throws TooManyRequestsError if a limit is exceeded; StoreUnavailableError if the request could not be counted */
export async function enforceActionLimit(
  limits: RateLimiter,
  action: RateLimitedAction,
  { ip, caller }: FastifyRequest,
): Promise<void> {
  switch (action) {
    case 'accounts':
      return limits.count('accounts of an address', toNetwork(ip));
    case 'changes':
      return limits.count('changes of an account', caller.accountId);
    case 'wallets':
      // Connecting a wallet waits for its relays, and may create an invoice at once.
      await limits.count('changes of an account', caller.accountId);
      return limits.count('invoices of an address', toNetwork(ip));
    default:
      // The narrowest limit first: a key above its limit does not use up the limits that it shares with others.
      if (caller.keyId !== null) await limits.count('invoices of a key', caller.keyId);
      await limits.count('invoices of an account', caller.accountId);
      return limits.count('invoices of an address', toNetwork(ip));
  }
}
