import { Module } from '@nestjs/common';
import { PaymentsModule } from '#modules';
import { EdgeModule } from '../edge/edge.module.ts';
import { ChargeController } from './charge.controller.ts';

@Module({ imports: [EdgeModule, PaymentsModule], controllers: [ChargeController] })
export class ChargesModule {}
