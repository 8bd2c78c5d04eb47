import { Controller, Get } from '@nestjs/common';
import { ListedLimits } from '#application';
import { Operation } from '../openapi/operation.ts';
import * as operations from './topups.operations.ts';
import { toPaymentMethodJson } from './topups-wire.ts';

@Controller('topup')
export class PaymentMethodsController {
  constructor(private readonly listedLimits: ListedLimits) {}

  @Get('payment-methods')
  @Operation(operations.listPaymentMethods)
  async listPaymentMethods() {
    const methods = (await this.listedLimits.listMethods()).map(toPaymentMethodJson);
    return { status: 'success', success: true, supported_methods: methods, data: methods };
  }
}
