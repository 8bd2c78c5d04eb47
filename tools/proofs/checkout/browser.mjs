// Tests the checkout page and the card form in Chromium and prints the result of each check. Started by ../checkout.ts.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import decodeQR from 'qr/decode.js';
import { CHECKOUT_HEADERS, renderCheckoutPage } from '../../../dist/apps/gateway/src/topups/checkout-page.js';
import { readPayments } from '../../../dist/libs/catalogue/src/index.js';

const { GATEWAY_URL, SANDBOX_URL, API_KEY, CHROMIUM, PACKAGES, SCREENSHOTS } = process.env;
const load = createRequire(path.join(PACKAGES, 'package.json'));
const { chromium } = load('playwright-core');
const axe = await readFile(load.resolve('axe-core/axe.min.js'), 'utf8');

const FOLLOWED = 20;
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 3, isMobile: true, hasTouch: true };
const SMALL = { viewport: { width: 320, height: 568 } };
const ARGS =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync';

let failed = 0;
function check(holds, line) {
  process.stdout.write(`${holds ? 'passes' : 'FAILS '} ${line}\n`);
  if (!holds) failed++;
}

async function post(url, body, key) {
  const authorization = key ? { authorization: `Bearer ${key}` } : {};
  const headers = { 'content-type': 'application/json', ...authorization };
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

const create = () => post(`${GATEWAY_URL}/topup/create/btc-lightning`, { amount: 2.5, currency: 'USD' }, API_KEY);
const pay = ({ lightning_invoice: invoice }) => post(`${SANDBOX_URL}/wallet/pay`, { invoice });
const getStatus = async ({ invoice_id }) => (await fetch(`${GATEWAY_URL}/topup/status/${invoice_id}`)).json();
const waitUntilSettled = async (invoice) => {
  while ((await getStatus(invoice)).status !== 'Settled') await new Promise((done) => setTimeout(done, 10));
};

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS.split(' ') });
const foreignUrls = new Set();

/** Whether a request is a navigation, or belongs to the page of the card processor, to which card payments navigate. */
const isProcessor = (request) => request.isNavigationRequest() || request.frame().url().startsWith(SANDBOX_URL);

/** Opens a page in its own browser context and records its requests and errors. */
async function open(options, url) {
  const context = await browser.newContext({ ...PHONE, ...options });
  // not every browser has these permissions
  await context.grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => {});
  const page = await context.newPage();
  const complaints = [];
  const requests = [];
  page.on('request', (request) => {
    requests.push(request.url());
    if (!request.url().startsWith(GATEWAY_URL) && !isProcessor(request)) foreignUrls.add(request.url());
  });
  page.on('console', (message) => {
    const isGatewayPage = message.location().url.startsWith(GATEWAY_URL);
    if (message.type() === 'error' && isGatewayPage) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  if (url) await page.goto(url);
  return { context, page, complaints, requests };
}

async function violations(page) {
  await page.evaluate(axe);
  const { violations: failedRules, passes } = await page.evaluate(() => globalThis.axe.run());
  return { passCount: passes.length, issues: failedRules.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`) };
}

// --- every state, as the server renders it --------------------------------------------------------------------------

const NOW = new Date().toISOString();
const LATER = new Date(Date.now() + 872_000).toISOString();
const { coins } = readPayments();
const findCoin = (code) => coins.find((coin) => coin.code === code);
const lightning = {
  topupId: 'AAAAAAAAAAAAAAAAAAAAAA',
  displayName: 'Bitcoin Lightning',
  requested: { amount: '25', currency: 'USD' },
  coin: findCoin('BTC'),
  units: 25_000_000n,
  paidUnits: 0n,
  destination: { kind: 'bolt11', value: (await create()).lightning_invoice },
  expiresAt: LATER,
  status: 'New',
};
const bitcoin = {
  ...lightning,
  displayName: 'Bitcoin',
  destination: { kind: 'address', value: 'bcrt1q6rhpng9evdsfnn833a4f4vej0asu6dk5srld6x' },
};
const STATES = {
  new: lightning,
  address: bitcoin,
  partial: { ...bitcoin, paidUnits: 10_000_000n },
  short: { ...bitcoin, status: 'Expired', paidUnits: 10_000_000n, expiresAt: NOW },
  reduced: { ...lightning, status: 'Settled', paidUnits: 15_000_000n },
  processing: { ...lightning, status: 'Processing' },
  settled: { ...lightning, status: 'Settled', paidUnits: 25_000_000n },
  expired: { ...lightning, status: 'Expired', expiresAt: NOW },
  invalid: { ...lightning, status: 'Invalid' },
  page: {
    ...lightning,
    displayName: 'Card',
    coin: findCoin('USD'),
    units: 2_500n,
    destination: { kind: 'page', value: `${GATEWAY_URL}/elsewhere` },
  },
};
const COLOURS = ['light', 'dark'];

async function provePage([name, state], colorScheme) {
  const { context, page } = await open({ colorScheme });
  const url = `${GATEWAY_URL}/topup/checkout/${lightning.topupId}`;
  await page.route(url, (route) => route.fulfill({ headers: CHECKOUT_HEADERS, body: renderCheckoutPage(state, NOW) }));
  await page.goto(url);
  await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${colorScheme}.png`), fullPage: true });
  const { passCount, issues } = await violations(page);
  check(
    issues.length === 0 && passCount > 10,
    `${name}, ${colorScheme}: ${passCount} rules of axe pass ${issues.join('; ')}`,
  );
  await page.setViewportSize(SMALL.viewport);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  check(!wide, `${name}, ${colorScheme}: no horizontal overflow at a width of ${SMALL.viewport.width}`);
  await context.close();
}

// --- one invoice, from its creation to its payment ------------------------------------------------------------------

/** Decodes the QR code from a screenshot, as a camera does. */
async function readCode(page) {
  const png = await page.locator('.qr').screenshot();
  const blank = await browser.newPage();
  const image = await blank.evaluate(
    async (data) => {
      const bitmap = await createImageBitmap(await (await fetch(data)).blob());
      const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
      canvas.drawImage(bitmap, 0, 0);
      const pixels = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
      return { width: bitmap.width, height: bitmap.height, data: [...pixels.data] };
    },
    `data:image/png;base64,${png.toString('base64')}`,
  );
  await blank.close();
  return decodeQR({ ...image, data: Uint8Array.from(image.data) });
}

async function proveInvoice() {
  const invoice = await create();
  const { context, page, complaints, requests } = await open({}, invoice.checkout_url);
  const code = await readCode(page);
  check(code === `LIGHTNING:${invoice.lightning_invoice.toUpperCase()}`, 'the QR code has the invoice in upper case');

  await page.getByRole('button', { name: 'Copy the invoice' }).click();
  await page.getByRole('status').filter({ hasText: 'Copied' }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check(copied === invoice.lightning_invoice, 'the invoice is copied, and the page announces it to screen readers');

  const timer = page.getByRole('timer');
  const before = await timer.textContent();
  await page.waitForFunction((text) => document.getElementById('left').textContent !== text, before);
  check(/^1[45]:\d\d$/.test(before), `the remaining time is counted down (${before}, ${await timer.textContent()})`);

  await pay(invoice);
  await page.locator('.settled').waitFor();
  const announcement = await page.locator('#said').textContent();
  check(announcement.startsWith('Paid'), 'a payment is announced to screen readers');
  const requestCount = requests.length;
  await new Promise((done) => setTimeout(done, 2_000));
  check(requests.length === requestCount, 'the page of a paid invoice sends no requests for two seconds');
  check(complaints.length === 0, `the browser reported no errors ${complaints.join('; ')}`);
  await context.close();
}

async function proveFollowing() {
  const lags = [];
  for (let i = 0; i < FOLLOWED; i++) {
    const invoice = await create();
    const { context, page } = await open({}, invoice.checkout_url);
    const displayedAt = page
      .locator('.settled')
      .waitFor()
      .then(() => performance.now());
    await pay(invoice);
    await waitUntilSettled(invoice);
    const settledAt = performance.now();
    lags.push(Math.max(0, (await displayedAt) - settledAt));
    await context.close();
  }
  lags.sort((one, other) => one - other);
  const [median, last] = [lags[FOLLOWED / 2], lags.at(-1)].map(Math.round);
  check(
    last < 1_000,
    `the page is updated ${median} ms (median) after the API, at most ${last} ms, in ${FOLLOWED} payments`,
  );
}

async function proveHidden() {
  const invoice = await create();
  const { context, page, requests } = await open({}, invoice.checkout_url);
  await page.evaluate(() => Object.defineProperty(document, 'hidden', { get: () => globalThis.away ?? true }));
  await new Promise((done) => setTimeout(done, 1_000));
  const before = requests.length;
  await new Promise((done) => setTimeout(done, 3_000));
  check(requests.length - before <= 1, 'a hidden page sends at most one request in three seconds');
  await pay(invoice);
  await waitUntilSettled(invoice);
  await page.evaluate(() => {
    globalThis.away = false;
    document.dispatchEvent(new Event('visibilitychange'));
  });
  await page.locator('.settled').waitFor({ timeout: 1_000 });
  check(true, 'a page that becomes visible updates within a second');
  await context.close();
}

async function proveKeyboard() {
  const invoice = await create();
  const { context, page } = await open({ isMobile: false, hasTouch: false }, invoice.checkout_url);
  const focused = [];
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press('Tab');
    focused.push(
      await page.evaluate(() => {
        const { textContent, id } = document.activeElement;
        return `${id || textContent}${getComputedStyle(document.activeElement).outlineStyle === 'solid' ? '' : ', unseen'}`;
      }),
    );
  }
  const expected = ['destination', 'Open in a wallet', 'Copy the invoice'];
  check(focused.join() === expected.join(), `Tab reaches all controls, with focus rings: ${focused.join(', ')}`);
  await page.keyboard.press('Enter');
  await page.getByRole('status').filter({ hasText: 'Copied' }).waitFor();
  check(
    (await page.evaluate(() => navigator.clipboard.readText())) === invoice.lightning_invoice,
    'the keyboard activates the copy button',
  );
  await pay(invoice);
  await page.locator('.settled').waitFor();
  check(
    await page.evaluate(() => document.activeElement.id === 'status'),
    'the focus moves to the status when the focused button is replaced',
  );
  await context.close();
}

async function proveWithoutScript() {
  const invoice = await create();
  const { context, page } = await open({ javaScriptEnabled: false }, invoice.checkout_url);
  const displayedInvoice = await page.locator('#destination').inputValue();
  const wallet = await page.getByRole('link', { name: 'Open in a wallet' }).getAttribute('href');
  const buttons = await page.getByRole('button').count();
  check(
    displayedInvoice === invoice.lightning_invoice && wallet === `lightning:${displayedInvoice}`,
    'without scripts, the page displays the invoice and a link that opens it in a wallet',
  );
  check(buttons === 0, 'without scripts, the page has no buttons, which would need a script');
  await page.screenshot({ path: path.join(SCREENSHOTS, 'without-script.png'), fullPage: true });
  await pay(invoice);
  await waitUntilSettled(invoice);
  await page.getByRole('link', { name: 'Check for the payment' }).click();
  await page.locator('.settled').waitFor();
  check(true, 'without scripts, a link updates the status');
  await context.close();
}

async function proveUnknown() {
  const { context, page } = await open({}, `${GATEWAY_URL}/topup/checkout/AAAAAAAAAAAAAAAAAAAAAA`);
  const { passCount, issues } = await violations(page);
  check((await page.title()).startsWith('Not found'), 'the page of an unknown invoice has the title "Not found"');
  check(issues.length === 0 && passCount > 5, `unknown invoice: ${passCount} rules of axe pass ${issues.join('; ')}`);
  await context.close();
}

// --- a payment by card ------------------------------------------------------------------------------------------------

async function proveCard(colorScheme) {
  const { context, page, requests, complaints } = await open({ colorScheme }, `${GATEWAY_URL}/topup/card`);
  await page.screenshot({ path: path.join(SCREENSHOTS, `card-form-${colorScheme}.png`), fullPage: true });
  const { passCount, issues } = await violations(page);
  check(
    issues.length === 0 && passCount > 10,
    `card, ${colorScheme}: ${passCount} rules of axe pass ${issues.join('; ')}`,
  );

  await page.getByLabel('Amount in USD').fill('12.50');
  await page.getByLabel('API key or credit id').fill('sk-nobody');
  await page.getByRole('button', { name: 'Continue to payment' }).click();
  await page.getByRole('alert').filter({ hasText: 'API key' }).waitFor();
  await page.screenshot({ path: path.join(SCREENSHOTS, `card-refused-${colorScheme}.png`), fullPage: true });
  complaints.length = 0; // browsers report the 401 as an error

  await page.getByLabel('API key or credit id').fill(API_KEY);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${SANDBOX_URL}/**`);
  await page.getByRole('button', { name: /^Pay 12.50 USD/ }).click();
  await page.waitForURL(`${GATEWAY_URL}/topup/checkout/**`);
  await page.locator('.settled').waitFor();
  check(true, `card payment, ${colorScheme}: from the form to the processor, and back to a page with the status Paid`);
  const leakedUrls = requests.filter((url) => url.includes(API_KEY));
  check(
    leakedUrls.length === 0 && complaints.length === 0,
    `no URL contains the key, and the browser reported no errors ${complaints.join('; ')}`,
  );
  await context.close();
}

try {
  for (const scheme of COLOURS) await proveCard(scheme);
  for (const scheme of COLOURS) for (const state of Object.entries(STATES)) await provePage(state, scheme);
  await proveInvoice();
  await proveFollowing();
  await proveHidden();
  await proveKeyboard();
  await proveWithoutScript();
  await proveUnknown();
  check(
    foreignUrls.size === 0,
    `apart from navigations and the processor's page, no request left the origin ${[...foreignUrls].join(' ')}`,
  );
} finally {
  await browser.close();
}
if (failed > 0) process.exitCode = 1;
