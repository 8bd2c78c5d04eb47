import { Body, Controller, Delete, Get, HttpCode, Post } from '@nestjs/common';
import { CommandBus } from '@nestjs/cqrs';
import { type Caller, Clock, ConnectWallet, DisconnectWallet } from '#application';
import { type Cause, money } from '#kernel';
import { CurrentCaller, RequestCause } from '../edge/authentication/authenticator.ts';
import { ReadModelReader } from '../edge/reading/read-model-reader.ts';
import { Operation } from '../openapi/operation.ts';
import * as operations from './auto-topup.operations.ts';
import { DEFAULT_USD, NewWallet } from './auto-topup.requests.ts';
import { toAutoTopupJson } from './auto-topup-wire.ts';

@Controller('nwc-auto-topup')
export class AutoTopupController {
  constructor(
    private readonly commands: CommandBus,
    private readonly readModels: ReadModelReader,
    private readonly clock: Clock,
  ) {}

  @Post('connect')
  @HttpCode(200)
  @Operation(operations.connectWallet)
  async connect(
    @CurrentCaller() { accountId }: Caller,
    @Body() { nwc_url: url, threshold_usd, topup_amount_usd }: NewWallet,
    @RequestCause() cause: Cause,
  ) {
    const [threshold, amount] = [threshold_usd, topup_amount_usd].map((usd) =>
      money.roundToPicoUsd(usd ?? DEFAULT_USD),
    ) as [money.PicoUsd, money.PicoUsd];
    await this.commands.execute(new ConnectWallet(accountId, { url, threshold, amount }, cause));
    return this.loadAutoTopup(accountId);
  }

  @Get()
  @Operation(operations.getAutoTopup)
  read(@CurrentCaller() { accountId }: Caller) {
    return this.loadAutoTopup(accountId);
  }

  @Delete('connection')
  @Operation(operations.disconnectWallet)
  async disconnect(@CurrentCaller() { accountId }: Caller, @RequestCause() cause: Cause) {
    const { position } = await this.commands.execute(new DisconnectWallet(accountId, cause));
    await this.readModels.waitForPosition(position, 'autotopups');
    return { status: 'success', message: 'Wallet disconnected; automatic top-up is off' };
  }

  private async loadAutoTopup(accountId: string) {
    return toAutoTopupJson(await this.readModels.findAutoTopup(accountId), this.clock.now());
  }
}
