import { Inject, Injectable } from '@nestjs/common';
import pg from 'pg';
import { Accounts, Clock, PaymentBackends, TopupPayments, Topups } from '#application';
import { PostgresCheckpoints, PostgresDueTable } from '#eventstore';
import { Foundation, type Running, whileLeading } from '#infra';
import type { Lease } from '#kernel';
import { accountsWithOverdueHolds, findTopup } from '#projections';
import { expireHolds, watchTopups } from '#sagas';

/** What sagas read, watch and send commands to. */
@Injectable()
export class SagaPorts {
  constructor(
    readonly foundation: Foundation,
    @Inject(pg.Pool) readonly pool: pg.Pool,
    readonly accounts: Accounts,
    readonly topups: Topups,
    readonly backends: PaymentBackends,
    readonly payments: TopupPayments,
    readonly clock: Clock,
  ) {}
}

/** Starts what reacts and watches: top-ups are paid and credited, holds expire. Each in one process at a time. */
export async function startSagas(ports: SagaPorts): Promise<Running> {
  const { databaseUrl, runtime } = ports.foundation;
  const stop = new AbortController();
  const leading = Object.entries(sagasOf(ports)).map(([name, work]) =>
    whileLeading({ databaseUrl, name, signal: stop.signal, alarm: runtime.alarm }, work),
  );
  const close = async () => {
    stop.abort();
    await Promise.all(leading);
  };
  return { where: {}, close };
}

/** What there is to do, by the names of the leases. */
function sagasOf(ports: SagaPorts): Readonly<Record<string, (lease: Lease) => readonly Promise<void>[]>> {
  const { foundation, pool, accounts, topups, backends, payments, clock } = ports;
  const { store: facts, runtime } = foundation;
  return {
    topups: (lease) =>
      watchTopups(
        {
          ...{ facts, accounts, topups, backends, payments, clock, runtime },
          due: new PostgresDueTable(pool),
          checkpoints: new PostgresCheckpoints(pool),
          byReference: (backend, reference) => findTopup(pool, backend, reference),
        },
        lease,
      ),
    'hold-expiry': ({ signal }) => {
      const overdue = (now: string) => accountsWithOverdueHolds(pool, now);
      return [expireHolds({ accounts, clock, alarm: runtime.alarm, overdue }, signal)];
    },
  };
}
