/** What operations give for nothing, and by whom it is counted: by the address, and by key and account where there is one. */
import type { FastifyRequest } from 'fastify';
import type { RateLimiter } from '#application';
import { toNetwork } from '../network/client-addresses.ts';

export type RateLimitedAction = 'accounts' | 'invoices' | 'wallets' | 'changes';

/** @throws TooManyRequestsError, StoreUnavailableError */
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
      // Its relays are waited for, and what it is asked to pay at once is an invoice.
      await limits.count('changes of an account', caller.accountId);
      return limits.count('invoices of an address', toNetwork(ip));
    default:
      // The narrowest first: who is over it uses up nothing of what others share with him.
      if (caller.keyId !== null) await limits.count('invoices of a key', caller.keyId);
      await limits.count('invoices of an account', caller.accountId);
      return limits.count('invoices of an address', toNetwork(ip));
  }
}
