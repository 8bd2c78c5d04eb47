import type { FastifyReply } from 'fastify';

/**
 * Adds the `payment-receipt` header to a successful response that was paid for by a challenge, even to a replayed one.
 * The header names the payment by its hash, never by its preimage.
 */
export function addReceipt(reply: FastifyReply): void {
  const { anonymousCaller, routeOptions } = reply.request;
  if (!anonymousCaller || !('proof' in anonymousCaller) || !routeOptions.config.operation?.payPerRequest) return;
  if (reply.statusCode >= 300 || reply.hasHeader('payment-receipt')) return;
  const { id: challengeId, issued } = anonymousCaller.proof;
  const timestamp = new Date().toISOString();
  const receipt = { method: 'lightning', challengeId, reference: issued.paymentHash, status: 'success', timestamp };
  reply.header('payment-receipt', Buffer.from(JSON.stringify(receipt)).toString('base64url'));
}
