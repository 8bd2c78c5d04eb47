import type { Provider } from '@nestjs/common';
import pg from 'pg';
import { Clock, FileStore, HoldCommandRouter, Streams } from '#application';
import { Foundation, findStaleProcesses, type WorkProbe } from '#foundation';
import { formatUsd, StoreUnavailableError } from '#kernel';
import { findPayersByHoldOwner, findPayersWithOverdueHolds, findUnclaimedChallenges } from '#projections';
import { expireFiles, expireHolds, forfeitUnclaimedPayments } from '#sagas';
import type { LeaderTask } from './leader-tasks.ts';

export const FILE_EXPIRY = Symbol('expiry of files');
export const HOLD_EXPIRY = Symbol('expiry of holds');
/** Undefined if unclaimed payments are not forfeited. */
export const UNCLAIMED_PAYMENTS = Symbol('forfeiture of unclaimed payments');

/** Each sweep with what it uses. Sweeps find their work in read models and stores. */
export const sweepProviders: readonly Provider[] = [
  {
    provide: FILE_EXPIRY,
    inject: [Foundation, pg.Pool, FileStore, Clock],
    useFactory: (foundation: Foundation, pool: pg.Pool, files: FileStore, clock: Clock): LeaderTask => ({
      name: 'file-expiry',
      probe: createSweepProbe(foundation, pool),
      run: ({ signal }) => [expireFiles({ files, clock, runtime: foundation.runtime }, signal)],
    }),
  },
  {
    provide: HOLD_EXPIRY,
    inject: [Foundation, pg.Pool, Streams, Clock],
    useFactory: (foundation: Foundation, pool: pg.Pool, streams: Streams, clock: Clock): LeaderTask => ({
      name: 'hold-expiry',
      probe: createSweepProbe(foundation, pool),
      run: ({ signal }) => [
        expireHolds(
          {
            payers: new HoldCommandRouter(streams),
            clock,
            runtime: foundation.runtime,
            findOverduePayers: (now) => findPayersWithOverdueHolds(pool, now),
            findStaleProcesses: () => findStaleProcesses(pool),
            findPayersByOwner: (owners) => findPayersByHoldOwner(pool, owners),
          },
          signal,
        ),
      ],
    }),
  },
  {
    provide: UNCLAIMED_PAYMENTS,
    inject: [Foundation, pg.Pool, Streams, Clock],
    useFactory: (
      foundation: Foundation,
      pool: pg.Pool,
      { challenges }: Streams,
      clock: Clock,
    ): LeaderTask | undefined => {
      const { settings, runtime, log } = foundation;
      const { unclaimedAfterDays } = settings;
      if (unclaimedAfterDays === undefined) return undefined;
      return {
        name: 'unclaimed',
        probe: createSweepProbe(foundation, pool),
        run: ({ signal }) => [
          forfeitUnclaimedPayments(
            {
              challenges,
              clock,
              runtime,
              unclaimedAfterDays,
              findUnclaimed: (before) => findUnclaimedChallenges(pool, before),
              onForfeit: (forfeited) =>
                log.warn(
                  { challenges: forfeited.challenges, usd: formatUsd(forfeited.amount) },
                  'unclaimed payments became income',
                ),
            },
            signal,
          ),
        ],
      };
    },
  },
];

/** A sweep follows no events, so it can work if the stores respond, and the database accepts writes and appends. */
function createSweepProbe({ store }: Foundation, pool: pg.Pool): WorkProbe {
  return async () => {
    const [{ rows }] = await Promise.all([
      pool.query<{ mode: string }>(`select current_setting('transaction_read_only') as mode`),
      store.readLastPosition(),
      store.checkAppendRight?.(),
    ]);
    if (rows[0]?.mode === 'on') throw new StoreUnavailableError('the database accepts no writes of this process');
    return new Map();
  };
}
