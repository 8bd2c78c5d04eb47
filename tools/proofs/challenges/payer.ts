/** A payer without an account: asks, pays the challenge from the sandbox's wallet, and asks again with the proof. */

/** A request that is paid for by itself. */
export interface PayPerRequestCall {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly json?: object;
}

/** What was paid for, and what shows it. */
export interface PaymentProof {
  readonly wanted: PayPerRequestCall;
  /** For the `Authorization` header. */
  readonly credential: string;
  readonly sats: number;
}

export function ask(api: string, { path, method, json }: PayPerRequestCall, credential?: string): Promise<Response> {
  const headers = {
    ...(json ? { 'content-type': 'application/json' } : {}),
    ...(credential ? { authorization: credential } : {}),
  };
  return fetch(`${api}${path}`, { method, headers, ...(json ? { body: JSON.stringify(json) } : {}) });
}

/** @throws Error when there is no challenge, or it cannot be paid */
export async function paid(api: string, sandbox: string, wanted: PayPerRequestCall): Promise<PaymentProof> {
  const answer = await ask(api, wanted);
  const text = await answer.text();
  const challenge = memberOf(answer.headers.get('www-authenticate') ?? '');
  if (answer.status !== 402 || !challenge.request) throw new Error(`no challenge: ${answer.status} ${text}`);
  const { amount, methodDetails } = JSON.parse(Buffer.from(challenge.request, 'base64url').toString());
  const preimage = await pay(sandbox, methodDetails.invoice);
  const { id, realm, method, intent, request, expires } = challenge;
  const shown = { challenge: { id, realm, method, intent, request, expires }, payload: { preimage } };
  const credential = `Payment ${Buffer.from(JSON.stringify(shown)).toString('base64url')}`;
  return { wanted, credential, sats: Number(amount) };
}

/** Pays an invoice of the sandbox's node. @returns the preimage */
export async function pay(sandbox: string, invoice: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${sandbox}/wallet/pay`, { method: 'POST', headers, body: JSON.stringify({ invoice }) });
  if (!answer.ok) throw new Error(`the wallet could not pay: ${await answer.text()}`);
  return ((await answer.json()) as { preimage: string }).preimage;
}

/** The members of the first challenge, which is of the scheme `Payment`. */
function memberOf(header: string): Readonly<Record<string, string>> {
  const first = header.split(/,\s*L402\s/)[0] ?? '';
  return Object.fromEntries([...first.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
}
