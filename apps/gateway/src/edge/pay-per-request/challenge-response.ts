/**
 * Writes the 402 response: a challenge of the `Payment` scheme and one of L402 for the same invoice, in the form that
 * clients of both schemes expect.
 */
import type { FastifyReply } from 'fastify';
import type { InvalidProofReason, PaymentChallenge } from '#application';
import { selectErrorFormat } from '../errors/error-formats.ts';

const PROBLEM_TYPE_BASE_URL = 'https://paymentauth.org/problems';

/** Why a challenge is sent: the request has no proof, or one that does not pay for it. */
export type ChallengeReason = InvalidProofReason | 'no_proof';

/** Problem types of the `Payment` scheme. */
const PROBLEM_BY_REASON: Readonly<Record<ChallengeReason, readonly [problem: string, title: string, detail: string]>> =
  {
    no_proof: [
      'payment-required',
      'Payment required',
      'Pay the invoice and repeat the request with "Authorization: L402 <challengeId>:<preimage>", or send an API key',
    ],
    malformed: ['malformed-credential', 'Malformed credential', 'The proof cannot be parsed'],
    unknown: ['invalid-challenge', 'Invalid challenge', 'The proof does not match any challenge of this service'],
    method: ['method-unsupported', 'Unsupported method', 'Only payments over Lightning are supported'],
    expired: ['payment-expired', 'Payment expired', 'The payment can no longer be used'],
    unpaid: ['verification-failed', 'Verification failed', 'The preimage does not match the payment hash'],
    other_request: [
      'invalid-challenge',
      'Invalid challenge',
      'The payment was made for another request, for which it can still be used',
    ],
    used: ['invalid-challenge', 'Invalid challenge', 'The payment has already been used'],
  };

/** Responds with 402 and a challenge. */
export function sendChallenge(reply: FastifyReply, challenge: PaymentChallenge, reason: ChallengeReason): void {
  const [problem, title, detail] = PROBLEM_BY_REASON[reason];
  const { request } = reply;
  const error = { status: 402, message: `${title}: ${detail}`, type: 'payment_required', kind: 'payment_required' };
  const errorBody = selectErrorFormat(request).createBody({ ...error, code: 'payment_required' }, request.id);
  const body = {
    ...(errorBody as object),
    type: `${PROBLEM_TYPE_BASE_URL}/${problem}`,
    title,
    detail,
    challengeId: challenge.id,
    invoice: challenge.invoice,
    payment_hash: challenge.paymentHash,
    amount_sats: Number(challenge.sats),
    expires_at: challenge.expires,
  };
  reply.header('www-authenticate', [paymentLine(challenge), l402Line(challenge)]);
  reply.status(402).type('application/json; charset=utf-8').send(body);
}

/** Includes the invoice as a parameter, for clients that do not decode the one in `request`. */
function paymentLine({ id, realm, request, description, expires, invoice }: PaymentChallenge): string {
  const charge = { id, realm, method: 'lightning', intent: 'charge', request, description, expires, invoice };
  return `Payment ${parameters(charge)}`;
}

/** Sends the macaroon under both names that clients know: `macaroon` (bLIP-26) and `token` (the later L402 format). */
function l402Line({ token, invoice }: PaymentChallenge): string {
  return `L402 ${parameters({ macaroon: token, invoice, version: '0', token })}`;
}

/** Formats parameters as quoted strings (RFC 9110, 5.6.4). Characters that are not printable ASCII are removed. */
function parameters(all: Readonly<Record<string, string>>): string {
  return Object.entries(all)
    .map(([name, value]) => `${name}="${value.replace(/[^\x20-\x7e]/g, '').replace(/["\\]/g, '\\$&')}"`)
    .join(', ');
}
