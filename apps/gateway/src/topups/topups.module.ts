import { Module } from '@nestjs/common';
import { Clock, CreateTopupHandler, ExchangeRates, PaymentMethods, Streams, TopupPollTrigger } from '#application';
import { topupWorkflow } from '#domain';
import { PostgresWorkflowSchedule } from '#eventstore';
import { Foundation } from '#foundation';
import { injectByName, PaymentsModule } from '#modules';
import { TopupFinder } from '#projections';
import { EdgeModule } from '../edge/edge.module.ts';
import { ReadModelLaggingError } from '../edge/errors/errors.ts';
import { READ_MODEL_WAIT_MS, ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { CardController } from './card.controller.ts';
import { CheckoutController } from './checkout.controller.ts';
import { PaymentMethodsController } from './payment-methods.controller.ts';
import { TopupsController } from './topups.controller.ts';
import { PaymentWebhooksController } from './webhooks.controller.ts';

@Module({
  imports: [EdgeModule, PaymentsModule],
  controllers: [
    TopupsController,
    PaymentMethodsController,
    CardController,
    CheckoutController,
    PaymentWebhooksController,
  ],
  providers: [
    injectByName(
      CreateTopupHandler,
      {
        streams: Streams,
        paymentMethods: PaymentMethods,
        rates: ExchangeRates,
        clock: Clock,
        foundation: Foundation,
      },
      ({ foundation: { runtime }, ...dependencies }) => new CreateTopupHandler({ ...dependencies, runtime }),
    ),
    { provide: TopupPollTrigger, inject: [ReadModelReader, Clock], useFactory: createTopupPollTrigger },
  ],
})
export class TopupsModule {}

/** Makes top-ups due at once, in the schedule from which the sagas process takes them. */
function createTopupPollTrigger({ pool, freshnessCheck }: ReadModelReader, clock: Clock): TopupPollTrigger {
  const schedule = new PostgresWorkflowSchedule(pool);
  const topups = new TopupFinder(pool, freshnessCheck);
  return {
    async wake(backend, references) {
      const { ids, isComplete: complete } = await topups.find(backend, references, READ_MODEL_WAIT_MS);
      if (ids.size > 0) await schedule.wake(topupWorkflow.name, [...ids.values()], clock.now());
      if (!complete) throw new ReadModelLaggingError(); // the backend then repeats its webhook
    },
  };
}
