import type { FastifyReply } from 'fastify';

/**
 * Adds the receipt to an answer that was paid for by the request, also where it is shown again. It names the payment by its
 * hash, never by the preimage.
 */
export function addReceipt(reply: FastifyReply): void {
  const { visitor, routeOptions } = reply.request;
  if (!visitor || !('proof' in visitor) || !routeOptions.config.operation?.challenge) return;
  if (reply.statusCode >= 300 || reply.hasHeader('payment-receipt')) return;
  const { id: challengeId, issued } = visitor.proof;
  const timestamp = new Date().toISOString();
  const receipt = { method: 'lightning', challengeId, reference: issued.paymentHash, status: 'success', timestamp };
  reply.header('payment-receipt', Buffer.from(JSON.stringify(receipt)).toString('base64url'));
  const said = String(reply.getHeader('cache-control') ?? '');
  reply.header('cache-control', ['private', ...(said === '' ? [] : [said])].join(', '));
}
