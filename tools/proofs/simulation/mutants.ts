/**
 * Mistakes that could be made in the product, each with what it breaks. `npm run prove:simulation -- --mutants` plants
 * one after the other, and fails if the simulation does not find one of them.
 */

export interface Mutant {
  readonly name: string;
  /** What happens in an installation. */
  readonly breaks: string;
  /** Path of the source file. */
  readonly file: string;
  /** Occurs once in the file, in TypeScript as in JavaScript. */
  readonly original: string;
  readonly replacement: string;
}

const ACCOUNT_STATE = 'libs/domain/src/account/state.ts';
const ACCOUNT_DECISIONS = 'libs/domain/src/account/decide.ts';
const HOLD_DECISIONS = 'libs/domain/src/account/hold-decisions.ts';
const HOLDS = 'libs/domain/src/holds.ts';
const LIMIT_WINDOW = 'libs/domain/src/limit-window.ts';
const EXPOSURE = 'libs/domain/src/account/exposure.ts';
const SNAPSHOT = 'libs/domain/src/account/snapshot.ts';
const COMMAND_QUEUE = 'libs/kernel/src/stream-command-queue.ts';
const STREAM_PAYER = 'libs/application/src/billing/stream-payer.ts';
const BILLING_ENGINE = 'libs/application/src/billing/billing-engine.ts';
const TOPUP_PAYMENTS = 'libs/application/src/topups/topup-payments.ts';
const TOPUP_DECISIONS = 'libs/domain/src/topup/decide.ts';
const TOPUP_WORKFLOW = 'libs/domain/src/topup/workflow.ts';
const AUTO_TOPUP_DECISIONS = 'libs/domain/src/autotopup/decide.ts';
const AUTO_TOPUP_STATE = 'libs/domain/src/autotopup/state.ts';
const AUTO_TOPUP_WORKFLOW = 'libs/sagas/src/auto-topup-workflow.ts';
const WORKFLOW_RUNNER = 'libs/kernel/src/workflow-runner.ts';
/** It takes the place of the one in PostgreSQL. */
const WORKFLOW_SCHEDULE = 'libs/testing/src/simulation/memory-workflow-schedule.ts';
const HOLD_EXPIRY = 'libs/sagas/src/hold-expiry.ts';

export const MUTANTS: readonly Mutant[] = [
  // holds and charges
  {
    name: 'overdraw',
    breaks: 'a hold takes more than the available money',
    file: HOLD_DECISIONS,
    original: 'const amount = money.min(requested, maxAmount, spendable);',
    replacement: 'const amount = money.min(requested, maxAmount);',
  },
  {
    name: 'first part not required',
    breaks: 'a hold is placed although the money is held by others, and is then worth nothing',
    file: HOLD_DECISIONS,
    original: 'if (available >= required) return;',
    replacement: 'if (available >= 0n) return;',
  },
  {
    name: 'extension beyond the money',
    breaks: 'an extension takes more than the available money',
    file: HOLD_DECISIONS,
    original: 'if (!isContestedByOthers) return money.min(max, available);',
    replacement: 'if (!isContestedByOthers) return max;',
  },
  {
    name: 'charge above the hold',
    breaks: 'a customer is charged more than was held',
    file: HOLDS,
    original: 'money.toJsonAmount(money.min(money.parseJsonAmount(charge.price), hold.amount))',
    replacement: 'money.toJsonAmount(money.parseJsonAmount(charge.price))',
  },
  {
    name: 'settled twice',
    breaks: 'a charge whose response was lost is repeated as a cost of the operator',
    file: HOLDS,
    original: "    case 'settled':\n    case 'absorbed':\n      return [];",
    replacement:
      "    case 'settled':\n      return [{ type: 'ChargeAbsorbed', data: { holdId, charge, at } }];\n    case 'absorbed':\n      return [];",
  },
  {
    name: 'late charge forgotten',
    breaks: 'the ledger lacks the cost of a charge whose hold had expired',
    file: HOLDS,
    original: "    case 'expired':\n      return [{ type: 'ChargeAbsorbed', data: { holdId, charge, at } }];",
    replacement: "    case 'expired':\n      return [];",
  },
  {
    name: 'cost of a release forgotten',
    breaks: 'the ledger lacks what a provider bills for a response that was useless',
    file: HOLDS,
    original: '...failure } }, ...cost];',
    replacement: '...failure } }];',
  },
  {
    name: 'cost after an expiry forgotten',
    breaks: 'the ledger lacks what a provider bills for a useless response whose hold had expired',
    file: HOLDS,
    original: 'return cost; // the provider invoices',
    replacement: 'return []; // the provider invoices',
  },
  {
    name: 'repeated extension rejected',
    breaks: 'a response whose extension was stored, but not confirmed, is truncated although its money is held',
    file: HOLD_DECISIONS,
    original: 'if (isExtended) return [];',
    replacement: '',
  },
  {
    name: 'holds of others abandoned',
    breaks: 'when a gateway dies, the requests of the others cannot be charged',
    file: HOLDS,
    original: 'hold.owner === owner && hold.at < before',
    replacement: 'hold.owner !== undefined && hold.at < before',
  },
  {
    name: 'held money not returned',
    breaks: 'what a charge leaves of its hold is lost',
    file: ACCOUNT_STATE,
    original: 'available: (account.available + hold.amount - charged)',
    replacement: 'available: (account.available)',
  },
  {
    name: 'reversal without money',
    breaks: 'a customer does not get back a charge for a response that was not delivered',
    file: ACCOUNT_STATE,
    original: 'available: money.add(account.available, money.parseJsonAmount(reversed.charged)),',
    replacement: 'available: account.available,',
  },
  // credits
  {
    name: 'credit repeated',
    breaks: 'a payment that is reported twice is credited twice',
    file: ACCOUNT_DECISIONS,
    original: 'const existing = account.credits.get(creditId);',
    replacement: "const existing = account.credits.get(creditId + ' ');",
  },
  {
    name: 'adjustment repeated',
    breaks: 'an adjustment whose response was lost is made twice',
    file: ACCOUNT_DECISIONS,
    original: 'const existing = account.adjustments.get(adjustmentId);',
    replacement: "const existing = account.adjustments.get(adjustmentId + ' ');",
  },
  {
    name: 'debit of held money',
    breaks: 'an operator debits money that running requests hold',
    file: ACCOUNT_DECISIONS,
    original: 'const after = money.add(account.available, amount);',
    replacement: 'const after = money.add(money.add(account.available, account.held), amount);',
  },
  // keys
  {
    name: 'limit not used',
    breaks: 'charges do not count towards the limit of an API key',
    file: ACCOUNT_STATE,
    original: 'used: money.add(key.used, charged) };',
    replacement: 'used: key.used };',
  },
  {
    name: 'limit ignores holds',
    breaks: 'requests at the same time exceed the limit of an API key',
    file: ACCOUNT_STATE,
    original: 'updateUnheld({ ...countUntil(key, at), held: money.add(key.held, amount) }, undefined, hold)',
    replacement: 'updateUnheld({ ...countUntil(key, at) }, undefined, hold)',
  },
  {
    name: 'extension not counted',
    breaks: 'growing responses exceed the limit of an API key',
    file: ACCOUNT_STATE,
    original: 'held: money.add(key.held, moves ? amount : by) }',
    replacement: 'held: money.add(key.held, moves ? amount : key.held) }',
  },
  {
    name: 'charge in a later window',
    breaks: 'a charge of yesterday uses up the limit of today',
    file: ACCOUNT_STATE,
    original: 'if (toCounterId(key) !== hold.counter) return updated;',
    replacement: '',
  },
  {
    name: 'window of a charge not stated',
    breaks: 'a key shows less than what counts towards its limit',
    file: ACCOUNT_DECISIONS,
    original: 'if (!hold || !key) return event;',
    replacement: 'return event;',
  },
  {
    name: 'window never ends',
    breaks: 'the limit of an API key is not reset',
    file: LIMIT_WINDOW,
    original: 'return getWindowId(limitWindow.resetPeriod, at) > limitWindow.window',
    replacement: "return getWindowId(limitWindow.resetPeriod, at) === 'never'",
  },
  {
    name: 'window goes back',
    breaks: 'clocks that differ reset the limit of an API key twice',
    file: LIMIT_WINDOW,
    original: 'return getWindowId(limitWindow.resetPeriod, at) > limitWindow.window',
    replacement: 'return getWindowId(limitWindow.resetPeriod, at) !== limitWindow.window',
  },
  {
    name: 'revoked key',
    breaks: 'a revoked API key can be used',
    file: HOLD_DECISIONS,
    original: "if (!key || key.revoked) return reject('key_revoked'",
    replacement: "if (!key) return reject('key_revoked'",
  },
  {
    name: 'expired key',
    breaks: 'an API key can be used after its expiry',
    file: HOLD_DECISIONS,
    original: "if (hasExpired(key, at)) return reject('key_expired'",
    replacement: "if (hasExpired(key, key.createdAt)) return reject('key_expired'",
  },
  {
    name: 'blocked key',
    breaks: 'a blocked API key can be used',
    file: HOLD_DECISIONS,
    original: "if (key.blocked) return reject('key_blocked'",
    replacement: "if (key.blocked && key.revoked) return reject('key_blocked'",
  },
  // exposure
  {
    name: 'exposure forgotten',
    breaks: 'the exposure of requests that have ended counts permanently, so later ones are refused',
    file: EXPOSURE,
    original: 'return sums;\n const [exposureBefore, exposureAfter]',
    replacement: 'return sums;\n if (!after) return sums; const [exposureBefore, exposureAfter]',
  },
  // state
  {
    name: 'snapshot without expired holds',
    breaks: 'after a restart the late charge of an expired hold is not found',
    file: SNAPSHOT,
    original: 'expired: encodeRecentIds(account.expired),',
    replacement: 'expired: encodeRecentIds([account.expired[1], account.expired[1]]),',
  },
  {
    name: 'snapshot skips an event',
    breaks: 'after a restart the balance lacks an event',
    file: COMMAND_QUEUE,
    original: 'store.read(this.stream, snapshot.revision - 1)',
    replacement: 'store.read(this.stream, snapshot.revision)',
  },
  {
    name: 'snapshot not checked',
    breaks: 'a snapshot is used for a stream that has another last event',
    file: COMMAND_QUEUE,
    original: '(first?.id !== snapshot.lastEventId ||',
    replacement: '(first?.id === snapshot.lastEventId ||',
  },
  {
    name: 'rejection from an outdated state',
    breaks: 'a request is refused for lack of money that was credited through another gateway',
    file: COMMAND_QUEUE,
    original: 'let isBaseCurrent = this.folded === undefined;',
    replacement: 'let isBaseCurrent = true;',
  },
  {
    name: 'state of a failed append',
    breaks: 'a process believes in events that were never stored',
    file: COMMAND_QUEUE,
    original: 'this.folded = base; // still correct if the append is rejected',
    replacement: 'this.folded = { ...base, state };',
  },
  {
    name: 'new ids for a resend',
    breaks: 'an append whose response was lost is not recognised, and its command is decided again',
    file: COMMAND_QUEUE,
    original: 'store.append(this.stream, expected, events)',
    replacement: 'store.append(this.stream, expected, events.map((event) => ({ ...event, id: runtime.generateId() })))',
  },
  {
    name: 'read without catching up',
    breaks: 'a process responds from a state that lacks what others have appended',
    file: COMMAND_QUEUE,
    original: 'const read = await (this.folded ? this.catchUp(this.folded) : this.load());',
    replacement: 'const read = await (this.folded ? Promise.resolve(this.folded) : this.load());',
  },
  // paying
  {
    name: 'undelivered charge stays',
    breaks: 'a customer pays for a response that was not delivered, because its charge was confirmed too late',
    file: STREAM_PAYER,
    original: '.then(() => this.absorb(hold, charge))',
    replacement: '.then(() => {})',
  },
  {
    name: 'charged hold not reversed',
    breaks: 'a charge that was stored late stays, although the customer got an error',
    file: STREAM_PAYER,
    original: "if (end?.type !== 'HoldSettled') throw error;",
    replacement: 'throw error;',
  },
  {
    name: 'unconfirmed hold stays',
    breaks: 'money that nobody uses stays held until it expires',
    file: STREAM_PAYER,
    original: 'if (error instanceof UnknownOutcomeError) void this.releaseUnconfirmed(hold);',
    replacement: 'if (error instanceof TypeError) void this.releaseUnconfirmed(hold);',
  },
  {
    name: 'unconfirmed hold given up',
    breaks: 'a hold that is stored late stays until it expires',
    file: STREAM_PAYER,
    original: "if (error instanceof Rejection && error.code === 'hold_not_found') continue;",
    replacement: "if (error instanceof Rejection && error.code === 'hold_not_found') return;",
  },
  {
    name: 'end of a forgotten hold not found',
    breaks: 'a client gets an error for a charge that is stored, because the account has ended many holds since',
    file: STREAM_PAYER,
    original: "if (!(error instanceof Rejection && error.code === 'hold_not_found')) throw error;",
    replacement: 'throw error;',
  },
  {
    name: 'charge not retried',
    breaks: 'a response that was delivered is not charged if the store fails once',
    file: STREAM_PAYER,
    original: 'shouldRetry: (error) => !isFinal(error),',
    replacement: 'shouldRetry: () => false,',
  },
  {
    name: 'lost charge is free',
    breaks: 'the client is informed that a request was free whose charge was stored at the first attempt',
    file: STREAM_PAYER,
    original: 'return isSettled ? money.min(money.parseJsonAmount(charge.price), hold.amount) : ZERO_USD;',
    replacement: 'return isSettled && events.length > 0 ? hold.amount : ZERO_USD;',
  },
  {
    name: 'failure is charged',
    breaks: 'a customer pays for a response that the provider spoiled',
    file: BILLING_ENGINE,
    original: "if (charge && CALLER_FAILURE_CODES.has(failure.code) && charge.price !== '0')",
    replacement: "if (charge && charge.price !== '0')",
  },
  {
    name: 'release without its cost',
    breaks: 'the cost of a failed request is not in the ledger',
    file: BILLING_ENGINE,
    original: 'await payer.release(hold, { failure, attempts, absorbed: charge });',
    replacement: 'await payer.release(hold, { failure, attempts });',
  },
  {
    name: 'stop before the last writes',
    breaks: 'a gateway stops before it has reversed a charge that was confirmed too late',
    file: 'libs/application/src/billing/pending-writes.ts',
    original: 'while (this.holdIdByWrite.size > 0)',
    replacement: 'while (this.holdIdByWrite.size > 1_000)',
  },
  // sweeps
  {
    name: 'dead process not swept',
    breaks: 'the money of a dead gateway stays held until its holds expire',
    file: HOLD_EXPIRY,
    original: 'const dead = await monitor.check();',
    replacement: 'const dead = (await monitor.check()).slice(1);',
  },
  {
    name: 'suspended process counts as dead at once',
    breaks: 'the holds of a gateway end while it serves, because of one late heartbeat',
    file: HOLD_EXPIRY,
    original: '> DEAD_AFTER_MS / SWEEP_INTERVAL_MS',
    replacement: '> -1',
  },
  // top-ups
  {
    name: 'payment not claimed',
    breaks: 'a payment that a payment backend reports for two invoices is credited twice',
    file: TOPUP_PAYMENTS,
    original: 'const isClaimed = isNew && isFinal && (await this.claim(payment, sourceId, topupId));',
    replacement: 'const isClaimed = isNew && isFinal;',
  },
  {
    name: 'claim of another owner',
    breaks: 'a payment that belongs to another top-up is credited',
    file: 'libs/application/src/billing/payment-registry.ts',
    original: 'return state.owner === claimant;',
    replacement: 'return state.owner !== undefined;',
  },
  {
    name: 'credit not marked',
    breaks: 'a credited payment is credited again and again, and never counts as done',
    file: TOPUP_WORKFLOW,
    original: "{ target: 'topup', command: { type: 'MarkCredited', data: { payment: data.payment, at } } },",
    replacement: '',
  },
  {
    name: 'reversal not sent',
    breaks: 'a customer has the credit of a payment that was charged back',
    file: TOPUP_WORKFLOW,
    original: '...[...topup.reversals.values()].map((reversed) => createReversalCommand(reversed, at)),',
    replacement: '',
  },
  {
    name: 'loss without a refund of the same report',
    breaks: 'a payment that is refunded in part and lost is reversed twice in part',
    file: TOPUP_DECISIONS,
    original: 'getReceivedPayment(payment.payment, current), isFinal)',
    replacement: 'getReceivedPayment(payment.payment, topup), isFinal)',
  },
  {
    name: 'lost payment stays',
    breaks: 'a payment that the network has dropped stays credited',
    file: TOPUP_DECISIONS,
    original: "if (confirmations === 'lost' && lostUnits === 0n && remainingUnits > 0n)",
    replacement: "if (confirmations === 'lost' && lostUnits !== 0n && remainingUnits > 0n)",
  },
  {
    name: 'pending payment is final',
    breaks: 'a payment is credited before the network has confirmed it',
    file: TOPUP_DECISIONS,
    original: "(typeof confirmations === 'number' && confirmations >= required)",
    replacement: "typeof confirmations === 'number'",
  },
  {
    name: 'day of automatic top-ups goes back',
    breaks: 'clocks that differ give automatic top-ups the limit of a day twice',
    file: AUTO_TOPUP_STATE,
    original: 'return date > dailyUsage.date ?',
    replacement: 'return date !== dailyUsage.date ?',
  },
  {
    name: 'automatic top-ups not counted',
    breaks: 'automatic top-ups exceed the limit of a day',
    file: AUTO_TOPUP_STATE,
    original: 'attempts: before.attempts + 1, amount',
    replacement: 'attempts: before.attempts, amount',
  },
  {
    name: 'attempt paid before it is credited',
    breaks: 'another automatic top-up begins while the payment of the last one is not credited',
    file: AUTO_TOPUP_WORKFLOW,
    original: "return received.every(({ isCredited }) => isCredited) ? createEndCommands('paid') : [];",
    replacement: "return createEndCommands('paid');",
  },
  {
    name: 'second wallet for an invoice',
    breaks: 'an invoice is sent to a second wallet while the first one can still pay it',
    file: AUTO_TOPUP_DECISIONS,
    original: 'if (attempt.payer !== undefined && attempt.payer !== wallet.wallet.pubkey) return false;',
    replacement: '',
  },
  {
    name: 'attempt ended while a wallet is requested',
    breaks: 'a wallet pays for an automatic top-up that has ended, while the next one runs',
    file: AUTO_TOPUP_DECISIONS,
    original: "if (data.outcome !== 'paid' && attempt.pendingRequest) return [];",
    replacement: '',
  },
  {
    name: 'too many invoices',
    breaks: 'more invoices are open than an account may have',
    file: 'libs/domain/src/topup/open-invoices.ts',
    original: 'if (ends.length >= maxOpenInvoices)',
    replacement: 'if (ends.length >= 1_000_000)',
  },
  // workflows
  {
    name: 'state of a workflow is outdated',
    breaks: 'a workflow plans its steps from a state without its own last event',
    file: 'libs/kernel/src/workflow-state-cache.ts',
    original: 'if (cached && !this.outdated.has(id)) return cached.state;',
    replacement: 'if (cached) return cached.state;',
  },
  {
    name: 'timer deleted by an old leader',
    breaks: 'a payment is not credited, because a leader whose lease has ended deletes the timer of its successor',
    file: WORKFLOW_SCHEDULE,
    original: 'woken: ++this.wakes,',
    replacement: 'woken: (existing?.woken ?? 0) + 1,',
  },
  {
    name: 'failed stream is done',
    breaks: 'a step that failed is not tried again',
    file: WORKFLOW_RUNNER,
    original: 'this.complete({ ...due, at, failures: due.failures + 1 });',
    replacement: 'this.complete({ ...due, at: null, failures: due.failures + 1 });',
  },
  // idempotency keys
  {
    name: 'claim not confirmed',
    breaks: 'two requests with one key hold money, and both are served',
    file: 'libs/application/src/billing/idempotent-payer.ts',
    original: 'await this.claim.confirm().catch(',
    replacement: 'await Promise.resolve().catch(',
  },
  // clocks
  {
    name: 'new holds abandoned',
    breaks: 'a process that has returned loses the holds that it placed since then',
    file: HOLDS,
    original: 'hold.owner === owner && hold.at < before',
    replacement: 'hold.owner === owner',
  },
  {
    name: 'change of a key before its holds',
    breaks: 'the reversal of a charge raises the limit of an API key that was changed by a process whose clock lags',
    file: ACCOUNT_DECISIONS,
    original: 'at: toInstantAfter(key.countedUntil, at)',
    replacement: 'at',
  },
];
