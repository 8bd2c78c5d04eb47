import { Rejection } from '#kernel';

/** Every reason why a command is rejected, except a lost lease. The HTTP edge maps each code to one error response. */
export type RejectionCode =
  | 'account_exists'
  | 'account_not_found'
  | 'adjustment_conflict'
  | 'challenge_exhausted'
  | 'challenge_expired'
  | 'challenge_mismatch'
  | 'challenge_not_found'
  | 'challenge_running'
  | 'challenge_used'
  | 'credit_conflict'
  | 'dedupe_changed'
  | 'hold_conflict'
  | 'hold_not_found'
  | 'hold_resolved'
  | 'insufficient_balance'
  | 'invalid_key_settings'
  | 'key_blocked'
  | 'key_exists'
  | 'key_expired'
  | 'key_limit_exceeded'
  | 'key_name_taken'
  | 'key_not_found'
  | 'key_revoked'
  | 'model_not_allowed'
  | 'name_taken'
  | 'no_open_cost'
  | 'payment_conflict'
  | 'price_list_conflict'
  | 'topup_exists'
  | 'too_many_invoices'
  | 'too_much_borne'
  | 'topup_not_found'
  | 'video_not_found';

export function reject(code: RejectionCode, message: string, details?: Readonly<Record<string, string>>): never {
  throw new Rejection<RejectionCode>(code, message, details);
}

/** Rejects a command that may be accepted soon: it lacks money that running requests hold or may need. */
export function rejectForNow(code: RejectionCode, message: string, details: Readonly<Record<string, string>>): never {
  throw new Rejection<RejectionCode>(code, message, details, true);
}
