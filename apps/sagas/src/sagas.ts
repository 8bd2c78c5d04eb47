import { Inject, Injectable } from '@nestjs/common';
import pg from 'pg';
import { Accounts, Clock, PaymentBackends, TopupPayments } from '#application';
import { PostgresCheckpoints } from '#eventstore';
import { Foundation, type Running, whileLeading } from '#infra';
import { type Lease, pump } from '#kernel';
import { accountsWithOverdueHolds, findOpenTopup, readOpenTopups } from '#projections';
import { expireHolds, sagaSink, topupCrediting, watchInvoices } from '#sagas';

/** What sagas read, watch and send commands to. */
@Injectable()
export class SagaPorts {
  constructor(
    readonly foundation: Foundation,
    @Inject(pg.Pool) readonly pool: pg.Pool,
    readonly accounts: Accounts,
    readonly backends: PaymentBackends,
    readonly payments: TopupPayments,
    readonly clock: Clock,
  ) {}
}

/** Starts what reacts and watches: top-ups are recorded and credited, holds expire. In one process at a time. */
export async function startSagas({
  foundation,
  pool,
  accounts,
  backends,
  payments,
  clock,
}: SagaPorts): Promise<Running> {
  const { databaseUrl, store, runtime } = foundation;
  const { alarm } = runtime;
  const stop = new AbortController();
  const work = ({ signal }: Lease) => {
    const crediting = sagaSink(topupCrediting, (wish) => payments.credit(wish), new PostgresCheckpoints(pool), runtime);
    return [
      pump(store.follow.bind(store), crediting, signal, runtime),
      expireHolds({ accounts, clock, alarm, overdue: (now) => accountsWithOverdueHolds(pool, now) }, signal),
      watchInvoices(
        {
          backends,
          payments,
          clock,
          alarm,
          open: (since) => readOpenTopups(pool, since),
          byReference: (backend, reference) => findOpenTopup(pool, backend, reference),
        },
        signal,
      ),
    ];
  };
  const leading = whileLeading({ databaseUrl, name: 'sagas', signal: stop.signal, alarm }, work);
  const close = async () => {
    stop.abort();
    await leading;
  };
  return { where: {}, close };
}
