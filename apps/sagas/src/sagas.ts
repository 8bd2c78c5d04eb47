import pg from 'pg';
import { openStreams, SystemClock, TopupPayments } from '#application';
import { coinbase, kraken, LndNode, MarketRates } from '#connectors';
import { PostgresCheckpoints, PostgresSnapshots } from '#eventstore';
import { type Foundation, leadWhile, type Running } from '#infra';
import { pump } from '#kernel';
import { accountsWithOverdueHolds, findOpenInvoice, readOpenInvoices } from '#projections';
import { expireHolds, sagaSink, topupCrediting, watchInvoices } from '#sagas';

/** Starts what reacts and watches: top-ups are recorded and credited, holds expire. In one process at a time. */
export async function startSagas({ settings, databaseUrl, store, runtime }: Foundation): Promise<Running> {
  const stop = new AbortController();
  const clock = new SystemClock();
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4, application_name: 'countinghouse-sagas' });
  pool.on('error', (error) => runtime.alarm('an idle connection of the sagas broke', error));
  const { accounts, topups } = openStreams(store, new PostgresSnapshots(pool), runtime);
  const { lndUrl: url, lndMacaroon: macaroon, lndCertificate: certificate } = settings;
  const node = new LndNode({ url, macaroon, certificate });
  const { alarm } = runtime;
  const rates = new MarketRates([kraken(settings.krakenUrl), coinbase(settings.coinbaseUrl)], clock, alarm);
  const payments = new TopupPayments(topups, accounts, rates, clock);

  const work = async (signal: AbortSignal) => {
    const crediting = sagaSink(
      topupCrediting,
      ({ topupId, payment }) => payments.credit(topupId, payment),
      new PostgresCheckpoints(pool),
      runtime,
    );
    await Promise.all([
      pump(store.follow.bind(store), crediting, signal, runtime),
      expireHolds({ accounts, clock, alarm, overdue: (now) => accountsWithOverdueHolds(pool, now) }, signal),
      watchInvoices(
        {
          node,
          payments,
          clock,
          alarm,
          open: (since) => readOpenInvoices(pool, since),
          byHash: (hash) => findOpenInvoice(pool, hash),
        },
        signal,
      ),
    ]);
  };
  const leading = leadWhile(databaseUrl, 'sagas', stop.signal, work, alarm);
  const close = async () => {
    stop.abort();
    await leading;
    await Promise.all([node.close(), rates.close(), pool.end()]);
  };
  return { where: {}, close };
}
