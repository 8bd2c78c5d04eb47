// Pays for requests without an account with the unmodified package mppx and a Lightning charge method that is
// registered through its public API. PACKAGES is the directory of the package, REQUESTS the requests as JSON,
// SANDBOX_URL the sandbox whose wallet pays.
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const { PACKAGES = '', REQUESTS = '[]', SANDBOX_URL = '' } = process.env;
const packages = createRequire(path.join(PACKAGES, 'package.json'));
const importPackage = (name) => import(pathToFileURL(packages.resolve(name)).href);
const { Credential, Method, z } = await importPackage('mppx');
const { Mppx } = await importPackage('mppx/client');

const charge = Method.from({
  name: 'lightning',
  intent: 'charge',
  schema: {
    credential: { payload: z.object({ preimage: z.string() }) },
    request: z.object({
      amount: z.string(),
      currency: z.string(),
      methodDetails: z.object({
        invoice: z.string(),
        paymentHash: z.optional(z.string()),
        network: z.optional(z.string()),
      }),
    }),
  },
});

let payments = 0;
async function pay(invoice) {
  payments++;
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${SANDBOX_URL}/wallet/pay`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ invoice }),
  });
  if (!response.ok) throw new Error(`the wallet could not pay: ${await response.text()}`);
  return (await response.json()).preimage;
}

const lightning = Method.toClient(charge, {
  async createCredential({ challenge }) {
    const preimage = await pay(challenge.request.methodDetails.invoice);
    return Credential.serialize({ challenge, payload: { preimage } });
  },
});

const { fetch: paidFetch } = Mppx.create({ methods: [lightning], polyfill: false });

const outcomes = [];
for (const { url, method, json, form } of JSON.parse(REQUESTS)) {
  const body = form ? toFormData(form) : json && JSON.stringify(json);
  const headers = json ? { 'content-type': 'application/json' } : {};
  const before = payments;
  const response = await paidFetch(url, { method, headers, ...(body ? { body } : {}) });
  await response.arrayBuffer();
  const receipt = response.headers.get('payment-receipt');
  outcomes.push({ url, status: response.status, payments: payments - before, receipt: receipt !== null });
}
process.stdout.write(`${JSON.stringify(outcomes)}\n`);

function toFormData({ fields, file }) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append(file.name, new Blob([Buffer.from(file.base64, 'base64')], { type: 'image/png' }), 'picture.png');
  return form;
}
