import { Module } from '@nestjs/common';
import { Clock, ExchangeRates, LightningNode } from '#application';
import { coinbase, kraken, LndNode, MarketRates } from '#connectors';
import { Foundation } from '#infra';
import { Role } from './role.ts';
import { StoresModule } from './stores.module.ts';

/** What accounts are funded through: the back ends that take payments, and the rates that coins are valued at. */
@Module({
  imports: [StoresModule],
  providers: [
    { provide: LightningNode, inject: [Role], useFactory: openNode },
    { provide: ExchangeRates, inject: [Role, Clock, Foundation], useFactory: openRates },
  ],
  exports: [LightningNode, ExchangeRates],
})
export class PaymentsModule {}

function openNode(role: Role): Promise<LndNode> {
  const { lndUrl: url, lndMacaroon: macaroon, lndCertificate: certificate } = role.settings;
  return role.keep(new LndNode({ url, macaroon, certificate }));
}

function openRates(role: Role, clock: Clock, { runtime }: Foundation): Promise<MarketRates> {
  const { krakenUrl, coinbaseUrl } = role.settings;
  return role.keep(new MarketRates([kraken(krakenUrl), coinbase(coinbaseUrl)], clock, runtime.alarm));
}
