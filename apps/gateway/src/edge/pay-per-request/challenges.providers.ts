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
import { LookUps } from '../limits/credential-lookups.ts';
import { PublicAddress } from '../network/public-address.ts';
import { Doors } from './pay-per-request-gate.ts';

export const challengeProviders: readonly Provider[] = [
  { provide: ChallengeTokens, inject: [Secrets], useFactory: (secrets: Secrets) => new ChallengeTokens(secrets) },
  {
    provide: ProofVerifier,
    inject: [Streams, ChallengeTokens, Secrets, Clock],
    useFactory: ({ challenges }: Streams, tokens: ChallengeTokens, secrets: Secrets, clock: Clock) =>
      new ProofVerifier(challenges, tokens, secrets, clock),
  },
  {
    provide: IssueChallengeHandler,
    inject: [Streams, PaymentMethods, ExchangeRates, ChallengeTokens, Secrets, Clock],
    useFactory: (
      ...[streams, offered, rates, tokens, secrets, clock]: [
        Streams,
        PaymentMethods,
        ExchangeRates,
        ChallengeTokens,
        Secrets,
        Clock,
      ]
    ) => new IssueChallengeHandler({ streams, offered, rates, tokens, secrets, clock }),
  },
  {
    provide: Doors,
    inject: [LookUps, CommandBus, PaymentMethods, ProofVerifier, RateLimiter, Secrets, PublicAddress],
    useFactory: (
      ...[lookUps, commands, offered, proofs, limits, secrets, address]: [
        LookUps,
        CommandBus,
        PaymentMethods,
        ProofVerifier,
        RateLimiter,
        Secrets,
        PublicAddress,
      ]
    ) => new Doors({ lookUps, commands, offered, proofs, limits, secrets, address }),
  },
];
