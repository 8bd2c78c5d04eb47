/** A payer without an account: asks, pays the challenge from the sandbox's wallet, and asks again with the proof. */

/** A request that is paid for by itself. */
export interface PayPerRequestCall {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly json?: object;
}

/** What was paid for, and what shows it. */
export interface PaymentProof {
  readonly call: PayPerRequestCall;
  /** For the `Authorization` header. */
  readonly credential: string;
  readonly sats: number;
}

export function sendCall(
  api: string,
  { path, method, json }: PayPerRequestCall,
  credential?: string,
): Promise<Response> {
  const headers = {
    ...(json ? { 'content-type': 'application/json' } : {}),
    ...(credential ? { authorization: credential } : {}),
  };
  return fetch(`${api}${path}`, { method, headers, ...(json ? { body: JSON.stringify(json) } : {}) });
}

/** @throws Error when there is no challenge, or it cannot be paid */
export async function payForCall(api: string, sandbox: string, call: PayPerRequestCall): Promise<PaymentProof> {
  const response = await sendCall(api, call);
  const text = await response.text();
  const challenge = parseChallengeHeader(response.headers.get('www-authenticate') ?? '');
  if (response.status !== 402 || !challenge.request) throw new Error(`no challenge: ${response.status} ${text}`);
  const { amount, methodDetails } = JSON.parse(Buffer.from(challenge.request, 'base64url').toString());
  const preimage = await pay(sandbox, methodDetails.invoice);
  const { id, realm, method, intent, request, expires } = challenge;
  const proof = { challenge: { id, realm, method, intent, request, expires }, payload: { preimage } };
  const credential = `Payment ${Buffer.from(JSON.stringify(proof)).toString('base64url')}`;
  return { call, credential, sats: Number(amount) };
}

/** Pays an invoice of the sandbox's node. @returns the preimage */
export async function pay(sandbox: string, invoice: string): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${sandbox}/wallet/pay`, { method: 'POST', headers, body: JSON.stringify({ invoice }) });
  if (!response.ok) throw new Error(`the wallet could not pay: ${await response.text()}`);
  return ((await response.json()) as { preimage: string }).preimage;
}

/** The members of the first challenge, which is of the scheme `Payment`. */
function parseChallengeHeader(header: string): Readonly<Record<string, string>> {
  const first = header.split(/,\s*L402\s/)[0] ?? '';
  return Object.fromEntries([...first.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
}
