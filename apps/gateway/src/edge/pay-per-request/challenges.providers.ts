import type { Provider } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import {
  ChallengeTokens,
  Clock,
  ExchangeRates,
  IssueChallengeHandler,
  PaymentMethods,
  ProofVerifier,
  RateLimiter,
  Secrets,
  Streams,
} from '#application';
import { Foundation } from '#foundation';
import { injectByName } from '#modules';
import { CredentialLookups } from '../limits/credential-lookups.ts';
import { PublicBaseUrl } from '../network/public-base-url.ts';
import { PayPerRequestGate } from './pay-per-request-gate.ts';

export const challengeProviders: readonly Provider[] = [
  { provide: ChallengeTokens, inject: [Secrets], useFactory: (secrets: Secrets) => new ChallengeTokens(secrets) },
  {
    provide: ProofVerifier,
    inject: [Streams, ChallengeTokens, Secrets, Clock],
    useFactory: ({ challenges }: Streams, tokens: ChallengeTokens, secrets: Secrets, clock: Clock) =>
      new ProofVerifier(challenges, tokens, secrets, clock),
  },
  injectByName(
    IssueChallengeHandler,
    {
      streams: Streams,
      paymentMethods: PaymentMethods,
      rates: ExchangeRates,
      tokens: ChallengeTokens,
      secrets: Secrets,
      clock: Clock,
      foundation: Foundation,
    },
    ({ foundation: { runtime }, ...dependencies }) => new IssueChallengeHandler({ ...dependencies, runtime }),
  ),
  injectByName(
    PayPerRequestGate,
    {
      lookups: CredentialLookups,
      commands: CommandBus,
      paymentMethods: PaymentMethods,
      proofs: ProofVerifier,
      limits: RateLimiter,
      secrets: Secrets,
      publicBaseUrl: PublicBaseUrl,
    },
    (dependencies) => new PayPerRequestGate(dependencies),
  ),
];
