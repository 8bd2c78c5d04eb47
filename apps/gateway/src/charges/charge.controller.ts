import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Clock, PaymentMethods, Streams, type VerifiedProof } from '#application';
import { type ChallengePhase, type ChallengeState, getChallengePhase } from '#domain';
import { money, toUsdJsonNumber as usd, ZERO_USD } from '#kernel';
import { UnauthorizedError } from '../edge/errors/errors.ts';
import { jsonContent, Operation } from '../openapi/operation.ts';
import { ChargeSchema } from './charge.schemas.ts';

/** The preimage was shown, so it is paid, also before anything says so. */
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
    summary: 'Returns what became of a payment for one request',
    description:
      'To who shows its proof, as it is shown with the request itself. The id of the challenge or its payment hash alone show nothing.',
    auth: 'public',
    acceptsProof: true,
    response: jsonContent(ChargeSchema),
    errors: [401, 503],
  })
  async get(@Req() { anonymousCaller }: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply) {
    if (!anonymousCaller || !('proof' in anonymousCaller))
      throw new UnauthorizedError('The proof of a payment is missing: send "Authorization: Payment …" or "L402 …"');
    const { proof } = anonymousCaller;
    const challenge = await this.streams.challenges.read(proof.challengeId);
    reply.header('cache-control', 'no-store');
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
    ...{ challenge_id: id, payment_hash: paymentHash, state: isLapsed ? 'lapsed' : (STATES[phase] ?? phase) },
    ...{ query_type: query.type, model: query.model },
    ...{
      price_usd: usd(money.parseJsonAmount(price)),
      charged_usd: usd(charged),
      held_usd: usd(held),
      left_usd: usd(remaining),
    },
    ...{ forfeited_usd: usd(forfeited), usable_until: usableUntil, issued_at: at, paid_at: paid?.at ?? null },
  };
}
