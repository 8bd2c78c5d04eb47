/**
 * The script of the checkout page: copies, counts down, and follows the payment. The server renders the status and the
 * payment: when the status or the paid amount changes, the script fetches the page again and replaces these parts.
 */
const POLL_INTERVAL_MS = 400;
/** Interval while the page is hidden or the top-up has expired; also the maximum interval after failed polls. */
const IDLE_POLL_INTERVAL_MS = 15_000;

export const CHECKOUT_SCRIPT = `
(() => {
  const PARTS = ['status', 'payment'];
  const part = (id) => document.getElementById(id);
  const said = part('said');
  let wake = () => {};
  let failed = 0;
  let endsAt;

  const state = () => part('payment').dataset;
  const statusAt = () => location.pathname.replace(/\\/checkout\\/([^/]+)\\/?$/, '/status/$1');
  const pause = () => {
    const idle = document.hidden || state().expired === 'true';
    const ms = idle ? ${IDLE_POLL_INTERVAL_MS} : Math.min(${POLL_INTERVAL_MS} * 2 ** failed, ${IDLE_POLL_INTERVAL_MS});
    return new Promise((done) => { wake = done; setTimeout(done, ms); });
  };

  async function ask(url) {
    const answer = await fetch(url, { cache: 'no-store', referrerPolicy: 'no-referrer' });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer;
  }

  async function look() {
    const { status, amount_paid } = await (await ask(statusAt())).json();
    if (status + ' ' + amount_paid !== state().shown) await showAgain();
  }

  async function showAgain() {
    const fresh = new DOMParser().parseFromString(await (await ask(location.pathname)).text(), 'text/html');
    const focused = part('payment').contains(document.activeElement);
    for (const id of PARTS) part(id).replaceWith(fresh.getElementById(id));
    document.title = fresh.title;
    said.textContent = part('status').textContent;
    if (focused) part('status').focus();
    start();
  }

  function start() {
    const left = part('left');
    endsAt = left ? Date.now() + Number(left.dataset.seconds) * 1000 : undefined;
    count();
  }

  function count() {
    const left = part('left');
    if (!left || endsAt === undefined) return;
    const seconds = Math.max(0, Math.round((endsAt - Date.now()) / 1000));
    const two = (number) => String(number).padStart(2, '0');
    const hours = Math.floor(seconds / 3600);
    const minutes = Math.floor(seconds / 60) % 60;
    left.textContent = (hours > 0 ? hours + ':' + two(minutes) : minutes) + ':' + two(seconds % 60);
  }

  async function copy(button) {
    const field = part(button.dataset.copy);
    field.select();
    let copied = true;
    try {
      if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
      else copied = document.execCommand('copy');
    } catch {
      copied = false;
    }
    const { textContent } = button;
    said.textContent = copied ? 'Copied' : 'The text is selected: copy it with your keyboard or menu';
    if (!copied || button.dataset.busy) return;
    button.dataset.busy = 'true';
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = textContent; delete button.dataset.busy; }, 2000);
  }

  async function follow() {
    while (state().final !== 'true') {
      await pause();
      try {
        await look();
        failed = 0;
      } catch {
        failed++;
      }
    }
  }

  document.documentElement.classList.add('with-script');
  document.addEventListener('visibilitychange', () => { if (!document.hidden) wake(); });
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]');
    if (button) void copy(button);
  });
  setInterval(count, 1000);
  start();
  void follow();
})();
`;
