import { Module } from '@nestjs/common';
import { Clock, ExchangeRates, PaymentBackends } from '#application';
import { coinbase, kraken, MarketRates, openPaymentBackends } from '#connectors';
import { Foundation } from '#infra';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** What accounts are funded through: the back ends that take payments, and the rates that coins are valued at. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: PaymentBackends, inject: [Role], useFactory: openBackends },
    { provide: ExchangeRates, inject: [Role, Clock, Foundation], useFactory: openRates },
  ],
  exports: [PaymentBackends, ExchangeRates],
})
export class PaymentsModule {}

function openBackends(role: Role): Promise<PaymentBackends> {
  return role.keep(openPaymentBackends(role.settings));
}

function openRates(role: Role, clock: Clock, { runtime }: Foundation): Promise<MarketRates> {
  const { krakenUrl, coinbaseUrl } = role.settings;
  const sources = [kraken(krakenUrl), coinbase(coinbaseUrl)];
  return role.keep(new MarketRates(sources, clock, role.settings, runtime.alarm));
}
