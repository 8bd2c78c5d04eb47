import { Module } from '@nestjs/common';
import pg from 'pg';
import { Clock, CreateTopupHandler, TopupHints } from '#application';
import { topupWorkflow } from '#domain';
import { PostgresDueTable } from '#eventstore';
import { PaymentsModule } from '#modules';
import { findTopups } from '#projections';
import { EdgeModule } from '../edge/edge.module.ts';
import { CardController } from './card.controller.ts';
import { CheckoutController } from './checkout.controller.ts';
import { HooksController } from './hooks.controller.ts';
import { TopupsController } from './topups.controller.ts';

/** Funding an account. */
@Module({
  imports: [EdgeModule, PaymentsModule],
  controllers: [TopupsController, CardController, CheckoutController, HooksController],
  providers: [CreateTopupHandler, { provide: TopupHints, inject: [pg.Pool, Clock], useFactory: topupHints }],
})
export class TopupsModule {}

/** Sagas find what is due in a moment, whichever process they run in. */
function topupHints(pool: pg.Pool, clock: Clock): TopupHints {
  const due = new PostgresDueTable(pool);
  return {
    async wake(backend, references) {
      const ids = await findTopups(pool, backend, references);
      if (ids.length > 0) await due.wake(topupWorkflow.name, ids, clock.now());
    },
  };
}
