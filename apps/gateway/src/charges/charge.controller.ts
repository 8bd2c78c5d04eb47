import { Controller, Get, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Clock, PaymentMethods, Streams, type VerifiedProof } from '#application';
import { type ChallengePhase, type ChallengeState, getChallengePhase } from '#domain';
import { money, toUsdJsonNumber as usd, ZERO_USD } from '#kernel';
import { UnauthorizedError } from '../edge/errors/errors.ts';
import { jsonContent, Operation } from '../openapi/operation.ts';
import { ChargeSchema } from './charge.schemas.ts';

/**
 * A valid proof contains the preimage, which only a payment reveals, so the challenge counts as paid even before the
 * payment is recorded.
 */
const STATES: Partial<Record<ChallengePhase, ChallengePhase>> = { issued: 'paid', expired: 'paid' };

@Controller()
export class ChargeController {
  constructor(
    private readonly streams: Streams,
    private readonly paymentMethods: PaymentMethods,
    private readonly clock: Clock,
  ) {}

  @Get(['v1/payments/charge', 'payments/charge'])
  @Operation({
    id: 'getCharge',
    tag: 'Service',
    summary: 'Returns the state of a pay-per-request payment',
    description:
      'Requires the proof, in the same form as for the paid request. The challenge id or the payment hash is not sufficient.',
    auth: 'public',
    acceptsProof: true,
    response: jsonContent(ChargeSchema),
    errors: [401, 503],
  })
  async get(@Req() { anonymousCaller }: FastifyRequest) {
    if (!anonymousCaller || !('proof' in anonymousCaller))
      throw new UnauthorizedError('Missing proof: send "Authorization: Payment …" or "Authorization: L402 …"');
    const { proof } = anonymousCaller;
    const challenge = await this.streams.challenges.read(proof.challengeId);
    const { step } = this.paymentMethods.getCoin(proof.issued.coin);
    const amount_sats = Number(BigInt(proof.issued.units) / BigInt(step));
    return { status: 'success', data: { ...toChargeJson(proof, challenge, this.clock.now()), amount_sats } };
  }
}

function toChargeJson({ id, issued }: VerifiedProof, challenge: ChallengeState, now: string) {
  const { query, price, paymentHash, usableUntil, at } = issued;
  const { charged, forfeited, available, holds, paid } = challenge;
  const phase = getChallengePhase(challenge, now);
  const held = [...holds.values()].reduce((sum, hold) => money.add(sum, hold.amount), ZERO_USD);
  const remaining = paid ? available : money.parseJsonAmount(price);
  const isLapsed = !paid && now > usableUntil;
  return {
    challenge_id: id,
    payment_hash: paymentHash,
    state: isLapsed ? 'lapsed' : (STATES[phase] ?? phase),
    query_type: query.type,
    model: query.model,
    price_usd: usd(money.parseJsonAmount(price)),
    charged_usd: usd(charged),
    held_usd: usd(held),
    left_usd: usd(remaining),
    forfeited_usd: usd(forfeited),
    usable_until: usableUntil,
    issued_at: at,
    paid_at: paid?.at ?? null,
  };
}
