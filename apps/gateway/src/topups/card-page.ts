/**
 * The page on which a card payment starts. Its script sends the credential in a header, so that the credential is in no
 * URL, history or log. The page requires scripts, as the page of the card processor does.
 */
import { html } from '../edge/pages/html.ts';
import { getPageHeaders, renderPage } from '../edge/pages/page.ts';

const SCRIPT = `
(() => {
  const form = document.querySelector('form');
  const button = form.querySelector('button');
  const refusal = document.getElementById('refusal');
  const { textContent: asks } = button;
  const isAccount = (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
  const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
  let key = random();

  function refuse(text) {
    refusal.textContent = text;
    refusal.hidden = text === '';
  }

  async function pay() {
    const { amount, credential } = Object.fromEntries(new FormData(form));
    const who = credential.trim();
    const answer = await fetch('card/session', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'idempotency-key': key,
        ...(isAccount(who) ? { 'x-credit-id': who } : { authorization: 'Bearer ' + who }),
      },
      body: JSON.stringify({ amount: Number(amount), currency: 'USD' }),
      referrerPolicy: 'no-referrer',
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.message);
    location.assign(body.payment_page);
  }

  form.addEventListener('input', () => { key = random(); });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    refuse('');
    button.disabled = true;
    button.textContent = 'One moment …';
    try {
      await pay();
    } catch (error) {
      refuse(error instanceof TypeError ? 'The service is unreachable. Please try again.' : error.message);
      key = random();
      button.disabled = false;
      button.textContent = asks;
    }
  });
  addEventListener('pageshow', () => {
    key = random();
    button.disabled = false;
    button.textContent = asks;
  });
})();
`;

export const CARD_HEADERS = getPageHeaders(SCRIPT);

/** @param limits the minimum and maximum of one payment in USD */
export function renderCardPage({ min, max }: { readonly min: string; readonly max: string }): string {
  const body = html`<main>
<p class="brand">Countinghouse</p>
<h1>Top up by card</h1>
<p class="soft">You pay on the page of the card processor. Countinghouse never receives your card details.</p>
<noscript><div class="status refused"><p>Card payments require JavaScript, also on the page of the card processor.</p></div></noscript>
<form>
<label for="amount">Amount in USD</label>
<input id="amount" name="amount" type="number" inputmode="decimal" min="${min}" max="${max}" step="0.01" required autocomplete="off" aria-describedby="limits">
<p id="limits" class="soft">From ${min} to ${max} USD</p>
<label for="credential">API key or credit id</label>
<input id="credential" name="credential" type="password" required maxlength="200" spellcheck="false" autocomplete="current-password">
<div id="refusal" class="status refused" role="alert" hidden></div>
<div class="actions"><button class="button">Continue to payment</button></div>
</form>
</main>`;
  return renderPage({ title: 'Top up by card', body, script: SCRIPT });
}
