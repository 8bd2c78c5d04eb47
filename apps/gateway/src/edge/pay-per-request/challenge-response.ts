/** How a payment is asked for: `Payment` and L402 side by side, over one invoice, as the clients of both read them. */
import type { FastifyReply } from 'fastify';
import type { InvalidProofReason, PaymentChallenge } from '#application';
import { selectErrorFormat } from '../errors/error-formats.ts';

const PROBLEM_TYPE_BASE_URL = 'https://paymentauth.org/problems';

/** Why a payment is asked for: there was none, or what was shown is not one for this request. */
export type ChallengeReason = InvalidProofReason | 'no_proof';

/** Names of problems are those of the `Payment` scheme. */
const PROBLEM_BY_REASON: Readonly<Record<ChallengeReason, readonly [problem: string, title: string, detail: string]>> =
  {
    no_proof: [
      'payment-required',
      'Payment required',
      'Pay the invoice and repeat the request with "Authorization: L402 <challengeId>:<preimage>", or send an API key',
    ],
    malformed: ['malformed-credential', 'Malformed credential', 'The proof of payment cannot be read'],
    unknown: ['invalid-challenge', 'Invalid challenge', 'The proof is for no payment that was asked for here'],
    method: ['method-unsupported', 'Unsupported method', 'Payments are taken over Lightning only'],
    expired: ['payment-expired', 'Payment expired', 'What was paid can no longer be used'],
    unpaid: ['verification-failed', 'Verification failed', 'The preimage is not that of the payment'],
    other_request: [
      'invalid-challenge',
      'Invalid challenge',
      'The payment was made for another request, which it can still be used for',
    ],
    used: ['invalid-challenge', 'Invalid challenge', 'The payment was used already'],
  };

/** Asks for a payment. */
export function sendChallenge(reply: FastifyReply, challenge: PaymentChallenge, reason: ChallengeReason): void {
  const [problem, title, detail] = PROBLEM_BY_REASON[reason];
  const { request } = reply;
  const error = { status: 402, message: `${title}: ${detail}`, type: 'payment_required', kind: 'payment_required' };
  const errorBody = selectErrorFormat(request).createBody({ ...error, code: 'payment_required' }, request.id);
  const body = {
    ...(errorBody as object),
    ...{ type: `${PROBLEM_TYPE_BASE_URL}/${problem}`, title, detail, challengeId: challenge.id },
    ...{ invoice: challenge.invoice, payment_hash: challenge.paymentHash },
    ...{ amount_sats: Number(challenge.sats), expires_at: challenge.expires },
  };
  reply.headers({ 'cache-control': 'no-store', 'www-authenticate': [paymentLine(challenge), l402Line(challenge)] });
  reply.status(402).type('application/json; charset=utf-8').send(body);
}

/** With the invoice as well, for clients that read no more than the interface describes. */
function paymentLine({ id, realm, request, description, expires, invoice }: PaymentChallenge): string {
  const charge = { id, realm, method: 'lightning', intent: 'charge', request, description, expires, invoice };
  return `Payment ${parameters(charge)}`;
}

/** The macaroon under both names that clients know: bLIP-26 has `macaroon`, the later specification `token`. */
function l402Line({ token, invoice }: PaymentChallenge): string {
  return `L402 ${parameters({ macaroon: token, invoice, version: '0', token })}`;
}

/** Quoted strings of RFC 9110, whatever is in them. */
function parameters(all: Readonly<Record<string, string>>): string {
  return Object.entries(all)
    .map(([name, value]) => `${name}="${value.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`)
    .join(', ');
}
