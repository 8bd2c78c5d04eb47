/** The page on which a top-up is paid: what to pay, where, and the state of the payment. */
import { encodeQR } from 'qr';
import { type CoinTerms, formatCoins } from '#domain';
import type { TopupView } from '#projections';
import { Html, html } from '../edge/pages/html.ts';
import { getPageHeaders, renderPage } from '../edge/pages/page.ts';
import { CHECKOUT_SCRIPT } from './checkout-script.ts';
import { toPaymentUri } from './topups-wire.ts';

export const CHECKOUT_HEADERS = getPageHeaders(CHECKOUT_SCRIPT);

/** A top-up with its coin, and the display name of its payment method. */
export type CheckoutView = Pick<
  TopupView,
  'topupId' | 'requested' | 'units' | 'paidUnits' | 'destination' | 'expiresAt' | 'status'
> & { readonly coin: CoinTerms; readonly displayName: string };

/**
 * `partial`: the rest is due. `short`: the rest is no longer due, after expiry or because a Lightning invoice or a
 * payment page is paid only once. `reduced`: a part was reversed after it was credited.
 */
type CheckoutState = 'waiting' | 'partial' | 'short' | 'processing' | 'settled' | 'reduced' | 'expired' | 'invalid';

const STATE_BY_STATUS: Readonly<Record<CheckoutView['status'], CheckoutState>> = {
  New: 'waiting',
  Processing: 'processing',
  Settled: 'settled',
  Expired: 'expired',
  Invalid: 'invalid',
};

const FINAL_STATES: ReadonlySet<CheckoutState> = new Set(['settled', 'reduced', 'invalid']);
const PAYABLE_STATES: ReadonlySet<CheckoutState> = new Set(['waiting', 'partial']);

/** @param now the time for which the page is rendered, in ISO 8601 */
export function renderCheckoutPage(topup: CheckoutView, now: string): string {
  const { displayName, topupId, destination } = topup;
  const methodText = destination.kind === 'page' ? `by ${displayName.toLowerCase()}` : `with ${displayName}`;
  const state = getState(topup);
  const [title, text] = describeState(state, topup);
  const body = html`<main>
<p class="brand">Countinghouse</p>
<h1>Top up ${methodText}</h1>
<div id="status" class="status ${state}" tabindex="-1"><strong>${title}</strong> <p>${text}</p></div>
${renderPayment(topup, state, now)}
<div id="said" class="unseen" role="status"></div>
</main>
<footer>Invoice ${topupId}</footer>`;
  return renderPage({ title: `${title}: ${formatRequested(topup)}`, body, script: CHECKOUT_SCRIPT });
}

function getState({ status, units, paidUnits, destination }: CheckoutView): CheckoutState {
  const isPart = paidUnits > 0n && paidUnits < units;
  if (isPart && status === 'Settled') return 'reduced';
  if (isPart && status === 'New') return destination.kind === 'address' ? 'partial' : 'short';
  return isPart && status === 'Expired' ? 'short' : STATE_BY_STATUS[status];
}

function describeState(state: CheckoutState, topup: CheckoutView): readonly [title: string, text: string] {
  const paid = formatCoinAmount(topup, topup.paidUnits);
  switch (state) {
    case 'waiting':
      return ['Waiting for payment', topup.destination.kind === 'page' ? CARD_PAYMENT_TEXT : AWAITING_PAYMENT_TEXT];
    case 'partial':
      return [
        'Partly paid',
        `${paid} was received and credited. ${formatCoinAmount(topup, calculateDueUnits(topup))} is still due.`,
      ];
    case 'short':
      return [
        'Partly paid',
        `${paid} was received and credited. ${topup.destination.kind === 'address' ? LATER_PAYMENT_TEXT : ''}`,
      ];
    case 'processing':
      return ['Payment seen', 'It is credited as soon as it is confirmed. You may close this page.'];
    case 'settled':
      return ['Paid', 'The amount is in your balance.'];
    case 'reduced':
      return ['Paid, partly reversed', `${paid} is still credited. The rest was reversed.`];
    case 'expired':
      return ['Expired', AFTER_EXPIRY[topup.destination.kind]];
    case 'invalid':
      return ['Payment reversed', 'It was refunded, disputed or reversed by its network. The credit was reversed too.'];
    default:
      return state satisfies never;
  }
}

const AWAITING_PAYMENT_TEXT = 'Your balance is credited once the payment has arrived.';
const CARD_PAYMENT_TEXT = 'You pay on the page of the card processor, and then return here.';
const LATER_PAYMENT_TEXT = 'Later payments are credited as well.';
const EXCHANGE_RATE_TEXT = 'at the exchange rate when it arrives';
const AFTER_EXPIRY: Readonly<Record<CheckoutView['destination']['kind'], string>> = {
  bolt11: `Please do not pay this invoice any more. A payment that is under way is still credited, ${EXCHANGE_RATE_TEXT}.`,
  address: `Please do not pay to this address any more. A late payment is still credited, ${EXCHANGE_RATE_TEXT}.`,
  page: 'No payment arrived in time. A payment that is under way is still credited.',
};

/** The part of the page below the status. The script reads its data, and replaces the part on a change. */
function renderPayment(topup: CheckoutView, state: CheckoutState, now: string): Html {
  const { status, paidUnits, coin } = topup;
  const hasFinalState = isFinal(state, topup);
  const statusKey = `${status} ${Number(formatCoins(paidUnits, coin))}`; // as the script computes it from the JSON
  return html`<div id="payment" data-shown="${statusKey}" data-final="${hasFinalState}" data-expired="${topup.expiresAt <= now}">
${renderAmounts(topup, state)}
${PAYABLE_STATES.has(state) ? renderPaymentOptions(topup, now) : undefined}
${hasFinalState ? undefined : html`<noscript><p class="actions"><a class="button second" href="">Check for the payment</a></p></noscript>`}
</div>`;
}

/** Whether no further payment is expected, so that the script stops polling. */
function isFinal(state: CheckoutState, { destination }: CheckoutView): boolean {
  return FINAL_STATES.has(state) || (state === 'short' && destination.kind !== 'address');
}

function renderAmounts(topup: CheckoutView, state: CheckoutState): Html {
  const { requested, units, paidUnits, coin } = topup;
  const coinAmount = formatCoinAmount(topup, state === 'partial' ? calculateDueUnits(topup) : units);
  const isSame = requested.currency === coin.code && state !== 'partial';
  return html`<dl>
<dt>Amount</dt><dd class="large">${formatRequested(topup)}</dd>
${isSame ? undefined : html`<dt>${state === 'partial' ? 'Still due' : 'In coins'}</dt><dd>${coinAmount}</dd>`}
${paidUnits > 0n && paidUnits !== units ? html`<dt>Paid</dt><dd>${formatCoinAmount(topup, paidUnits)}</dd>` : undefined}
</dl>`;
}

function renderPaymentOptions(topup: CheckoutView, now: string): Html {
  const { destination } = topup;
  return html`${destination.kind === 'page' ? renderPaymentLink(destination.value) : renderWalletOptions(topup)}
${renderExpiry(topup, now)}`;
}

function renderPaymentLink(address: string): Html {
  return html`<p class="actions"><a class="button" href="${address}">Pay by card</a></p>`;
}

function renderWalletOptions({ destination, coin, ...topup }: CheckoutView): Html {
  const { value, kind } = destination;
  const amount = formatCoins(calculateDueUnits(topup), coin);
  const isInvoice = kind === 'bolt11';
  const uri = isInvoice ? `lightning:${value}` : (toPaymentUri(value, coin, amount) ?? value);
  // An upper-case invoice is encoded in fewer, larger squares.
  const code = encodeQR(isInvoice ? uri.toUpperCase() : uri, 'svg', { ecc: 'low', border: 2 });
  const destinationLabel = isInvoice ? 'Lightning invoice' : `${coin.name} address`;
  return html`<div class="qr" role="img" aria-label="QR code of the ${destinationLabel}">${new Html(code)}</div>
<label for="destination">${destinationLabel}</label>
<textarea id="destination" readonly rows="${isInvoice ? 4 : 3}" spellcheck="false" autocomplete="off">${value}</textarea>
${isInvoice ? undefined : html`<label for="amount">Amount in ${coin.code}</label><input id="amount" readonly value="${amount}" autocomplete="off">`}
<div class="actions">
<a class="button" href="${uri}">Open in a wallet</a>
${renderCopyButton('destination', isInvoice ? 'Copy the invoice' : 'Copy the address')}
${isInvoice ? undefined : renderCopyButton('amount', 'Copy the amount')}
</div>`;
}

function renderCopyButton(field: string, label: string): Html {
  return html`<button type="button" class="button second scripted" data-copy="${field}">${label}</button>`;
}

function renderExpiry({ expiresAt }: CheckoutView, now: string): Html {
  const seconds = Math.max(0, Math.round((Date.parse(expiresAt) - Date.parse(now)) / 1000));
  const remainingText = `${Math.max(1, Math.round(seconds / 60))} min`;
  const expiryText = `${expiresAt.slice(0, 16).replace('T', ' ')} UTC`;
  return html`<p class="soft">Expires in <time id="left" role="timer" datetime="${expiresAt}" data-seconds="${seconds}">${remainingText}</time> (${expiryText})</p>`;
}

function calculateDueUnits({ units, paidUnits }: Pick<CheckoutView, 'units' | 'paidUnits'>): bigint {
  return units - paidUnits;
}

function formatRequested({ requested: { amount, currency } }: CheckoutView): string {
  return formatAmount(amount, currency);
}

function formatCoinAmount({ coin }: CheckoutView, units: bigint): string {
  return formatAmount(formatCoins(units, coin), coin.code);
}

/** Amounts in USD have at least two decimals. */
function formatAmount(amount: string, currency: string): string {
  const [integerPart, part = ''] = amount.split('.');
  return currency === 'USD' ? `${integerPart}.${part.padEnd(2, '0')} USD` : `${amount} ${currency}`;
}
