/** Credits and debits by the operator, without a payment. */
import { randomUUID } from 'node:crypto';
import { type Foundation, StartError } from '#foundation';
import { formatUsd, money, type PicoUsd, parseUsd, ZERO_USD } from '#kernel';
import { findAccount, type NamedAccount } from './find-account.ts';
import { type Operator, parseReason, withOperator } from './operator.ts';
import { runAsOperator } from './run-as-operator.ts';

type Print = (line: string) => void;

export interface AdjustmentOptions {
  readonly usd: string;
  readonly reason: string;
  readonly actor?: string | undefined;
  /** Id of the adjustment: a repeated command with it adjusts nothing. Random if undefined. */
  readonly id?: string | undefined;
}

/** At most nine digits before the decimal point: the columns of the read models have room for such sums. */
const AMOUNT = /^\d{1,9}(\.\d{1,12})?$/;
const ADJUSTMENT_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$/;

/** @throws StartError if the account does not exist, an option is invalid, or the id was used for something else */
export function creditAccount(
  foundation: Foundation,
  account: string,
  options: AdjustmentOptions,
  print: Print,
): Promise<void> {
  return adjust(foundation, account, { ...options, amount: parseAmount(options.usd) }, print);
}

/** @throws StartError like `creditAccount`, and if less than the amount is available */
export function debitAccount(
  foundation: Foundation,
  account: string,
  options: AdjustmentOptions,
  print: Print,
): Promise<void> {
  return adjust(foundation, account, { ...options, amount: money.negate(parseAmount(options.usd)) }, print);
}

/**
 * Reverses a credit or a debit completely.
 * @throws StartError like `creditAccount`, and if the adjustment does not exist, was reversed before, or less than its
 *   amount is available
 */
export async function reverseAdjustment(
  foundation: Foundation,
  account: string,
  { reverses, ...options }: Omit<AdjustmentOptions, 'usd'> & { readonly reverses: string },
  print: Print,
): Promise<void> {
  const target = await findAccount(foundation, account);
  await withOperator(foundation, options.actor, async (operator) => {
    const existing = (await operator.streams.accounts.read(target.id)).adjustments.get(reverses);
    if (!existing) throw new StartError(`The account has no adjustment ${reverses}.`);
    const amount = money.negate(money.parseJsonAmount(existing.amount));
    await book(operator, target, { ...options, id: options.id ?? `${reverses}-reversed`, amount, reverses }, print);
  });
}

async function adjust(
  foundation: Foundation,
  account: string,
  options: Omit<Booking, 'reverses'>,
  print: Print,
): Promise<void> {
  const target = await findAccount(foundation, account);
  await withOperator(foundation, options.actor, (operator) => book(operator, target, options, print));
}

interface Booking extends Omit<AdjustmentOptions, 'usd'> {
  readonly amount: PicoUsd;
  readonly reverses?: string | undefined;
}

async function book(
  operator: Operator,
  account: NamedAccount,
  { id = randomUUID(), amount, reason, reverses }: Booking,
  print: Print,
): Promise<void> {
  if (!ADJUSTMENT_ID.test(id))
    throw new StartError('--id must consist of up to 100 letters, digits, dots, colons, dashes and underscores.');
  const { streams, actor } = operator;
  const data = {
    adjustmentId: id,
    amount,
    reason: parseReason(reason),
    actor,
    ...(reverses === undefined ? {} : { reverses }),
    at: new Date().toISOString(),
  };
  const { events, state } = await runAsOperator(
    streams.accounts,
    account.id,
    { type: 'AdjustBalance', data },
    { actor },
  );
  const verb = amount < ZERO_USD ? 'debited from' : 'credited to';
  const size = formatUsd(amount < ZERO_USD ? money.negate(amount) : amount);
  const repeated = events.length > 0 ? '' : ' before';
  print(`${size} USD were ${verb} ${account.name}${repeated}, as ${id}`);
  print(`balance ${formatUsd(state.available)} USD, ${formatUsd(state.held)} USD held`);
}

function parseAmount(usd: string): PicoUsd {
  const amount = AMOUNT.test(usd) ? parseUsd(usd) : ZERO_USD;
  if (amount > ZERO_USD) return amount;
  throw new StartError('--usd must be an amount above 0 and below 1000000000, with at most 12 decimal places.');
}
