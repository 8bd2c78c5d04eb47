/** Sends requests without an account, and pays their challenges from the sandbox's wallet to get proofs of payment. */

/** A request that is paid for individually. */
export interface PayPerRequestCall {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly json?: object;
}

export interface PaymentProof {
  readonly call: PayPerRequestCall;
  /** The value of the `Authorization` header. */
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

/** Requests a challenge and pays it. @throws Error if the response has no challenge, or the wallet cannot pay */
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

/** Returns the parameters of the header's first challenge. Its scheme is `Payment`. */
function parseChallengeHeader(header: string): Readonly<Record<string, string>> {
  const first = header.split(/,\s*L402\s/)[0] ?? '';
  return Object.fromEntries([...first.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name, value]));
}
