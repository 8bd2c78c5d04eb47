import { AUTO_TOPUP, type AutoTopupEvent } from '#domain';
import { StartError } from '#foundation';
import { type EventReader, formatUsd, money, NO_STREAM, toStreamName } from '#kernel';

/** Prints the journal of an account's automatic top-ups: every step, one in a line, with its time. */
export async function printAutoTopups(
  store: Pick<EventReader, 'read'>,
  accountId: string,
  print: (line: string) => void,
): Promise<void> {
  let steps = 0;
  for await (const facts of store.read(toStreamName(AUTO_TOPUP, accountId), NO_STREAM)) {
    for (const fact of facts) print(`${fact.recordedAt}  ${lineOf(fact as unknown as AutoTopupEvent)}`);
    steps += facts.length;
  }
  if (steps === 0) throw new StartError(`The account ${accountId} has never had a wallet connected.`);
}

function lineOf({ type, data }: AutoTopupEvent): string {
  switch (type) {
    case 'WalletConnected':
      return `wallet ${data.wallet.pubkey} connected: ${usd(data.amount)} whenever the balance is below ${usd(data.threshold)}`;
    case 'WalletDisconnected':
      return 'the wallet is disconnected';
    case 'AutoTopupBegun':
      return `attempt ${data.attempt} begins: ${usd(data.amount)}, since the balance is ${usd(data.balance)}; top-up ${data.topupId}`;
    case 'AutoTopupInvoiced':
      return `attempt ${data.attempt} has an invoice, which expires at ${data.expiresAt}`;
    case 'WalletAsked':
      return `${request(data)}: wallet ${data.wallet} is about to be asked (turn ${data.token})`;
    case 'WalletRequestEnded':
      return `${request(data)}: ${data.outcome}${why(data.why)}`;
    case 'WalletAnswered':
      return `${request(data)}: the wallet answers ${data.code}${why(data.why)}`;
    case 'AutoTopupEnded':
      return `attempt ${data.attempt} ends: ${data.outcome}${why(data.why)}`;
    case 'AutoTopupPaused':
      return `paused until ${data.until}: ${data.code}${why(data.why)}`;
    default:
      return type satisfies never;
  }
}

function request(data: { readonly attempt: number; readonly request: number }): string {
  return `attempt ${data.attempt}, request ${data.request}`;
}

function why(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${reason}`;
}

function usd(amount: string): string {
  return `${formatUsd(money.parseJsonAmount(amount))} USD`;
}
