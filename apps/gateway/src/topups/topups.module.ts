import { Module } from '@nestjs/common';
import { CreateTopupHandler } from '#application';
import { PaymentsModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { CheckoutController } from './checkout.controller.ts';
import { TopupsController } from './topups.controller.ts';

/** Funding an account. */
@Module({
  imports: [EdgeModule, PaymentsModule],
  controllers: [TopupsController, CheckoutController],
  providers: [CreateTopupHandler],
})
export class TopupsModule {}
