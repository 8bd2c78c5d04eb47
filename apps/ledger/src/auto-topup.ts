import { AUTO_TOPUP, type AutoTopupEvent } from '#domain';
import { StartError } from '#foundation';
import { type EventReader, formatUsd, money, NO_STREAM, toStreamName } from '#kernel';

/** Prints the events of the automatic top-ups of an account: one line each, with the booking time of the event. */
export async function printAutoTopups(
  store: Pick<EventReader, 'read'>,
  accountId: string,
  print: (line: string) => void,
): Promise<void> {
  let eventCount = 0;
  for await (const events of store.read(toStreamName(AUTO_TOPUP, accountId), NO_STREAM)) {
    for (const event of events) print(`${event.recordedAt}  ${formatEvent(event as unknown as AutoTopupEvent)}`);
    eventCount += events.length;
  }
  if (eventCount === 0) throw new StartError(`The account ${accountId} has never had a wallet connected.`);
}

function formatEvent({ type, data }: AutoTopupEvent): string {
  switch (type) {
    case 'WalletConnected':
      return `wallet ${data.wallet.pubkey} connected: ${formatAmount(data.amount)} whenever the balance is below ${formatAmount(data.threshold)}`;
    case 'WalletDisconnected':
      return 'the wallet is disconnected';
    case 'AutoTopupBegun':
      return `attempt ${data.attempt} starts: ${formatAmount(data.amount)}, because the balance is ${formatAmount(data.balance)}; top-up ${data.topupId}`;
    case 'AutoTopupInvoiced':
      return `attempt ${data.attempt} has an invoice, which expires at ${data.expiresAt}`;
    case 'WalletAsked':
      return `${formatRequest(data)}: about to be sent to wallet ${data.wallet} (fencing token ${data.token})`;
    case 'WalletRequestEnded':
      return `${formatRequest(data)}: ${data.outcome}${formatReason(data.why)}`;
    case 'WalletAnswered':
      return `${formatRequest(data)}: the wallet responds ${data.code}${formatReason(data.why)}`;
    case 'AutoTopupEnded':
      return `attempt ${data.attempt} ends: ${data.outcome}${formatReason(data.why)}`;
    case 'AutoTopupPaused':
      return `paused until ${data.until}: ${data.code}${formatReason(data.why)}`;
    default:
      return type satisfies never;
  }
}

function formatRequest(data: { readonly attempt: number; readonly request: number }): string {
  return `attempt ${data.attempt}, request ${data.request}`;
}

function formatReason(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${reason}`;
}

function formatAmount(amount: string): string {
  return `${formatUsd(money.parseJsonAmount(amount))} USD`;
}
