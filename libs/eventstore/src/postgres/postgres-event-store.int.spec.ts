import { randomUUID } from 'node:crypto';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import { PostgresEventStore, WRITE_CONTRACT } from '#eventstore';
import { type NewEvent, NO_STREAM, pump, START_POSITION, StoreUnavailableError, type StreamHead } from '#kernel';
import { createMigratedDatabase, createTestRuntime, eventStoreContract, type TestDatabase } from '#testing';

async function openDatabase(): Promise<TestDatabase> {
  const database = await createMigratedDatabase();
  return database;
}

eventStoreContract('the PostgreSQL event store', async () => {
  const database = await openDatabase();
  const another = () => new PostgresEventStore({ connectionString: database.url, streamPrefixes: ['account-'] });
  const store = another();
  const close = async () => {
    await store.close();
    await database.drop();
  };
  return { store, openAnother: another, prefix: 'account-', close };
});

describe('the PostgreSQL event store', () => {
  let database: TestDatabase;
  let store: PostgresEventStore;
  let superuser: pg.Client;
  const opened: pg.Client[] = [];

  async function connectAs(connectionString: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  /** Opens a connection with the role of the service; it is closed at the end of the test. */
  async function connect(): Promise<pg.Client> {
    const client = await connectAs(database.url);
    opened.push(client);
    return client;
  }

  beforeAll(async () => {
    database = await openDatabase();
    superuser = await connectAs(database.superuserUrl);
    store = new PostgresEventStore({ connectionString: database.url });
  });

  afterEach(() => Promise.all(opened.splice(0).map((client) => client.end())));

  afterAll(async () => {
    await store.close();
    await superuser.end();
    await database.drop();
  });

  const fact = (): NewEvent => ({ id: randomUUID(), type: 'Happened', data: {}, metadata: {} });
  const appendRaw = (client: pg.Client, stream: string) =>
    client.query('select es.append_events($1, $2, $3, $4, $5, $6, $7, $8)', [
      WRITE_CONTRACT,
      stream,
      '{-1}',
      '{0}',
      `{${randomUUID()}}`,
      'Happened',
      '{}',
      '{}',
    ]);

  /** Resolves when a subscriber has polled the end of the log after this call. */
  async function looked(): Promise<void> {
    const { rows } = await superuser.query('select clock_timestamp() as now');
    const look = `select from pg_stat_activity where query like '%pg_snapshot_xmin%' and pid <> pg_backend_pid()
                     and datname = current_database() and state = 'idle' and query_start > $1`;
    for (let looks = 0; looks === 0; looks = (await superuser.query(look, [rows[0].now])).rowCount ?? 0);
  }

  test.each([
    ['before', 'late', 'early'],
    ['after', 'early', 'late'],
  ])('subscribe waits for a lower position whose transaction began %s the committed one', async (_, first, second) => {
    const start = ((await store.append(`account-${randomUUID()}`, NO_STREAM, [fact()])) as StreamHead).position;
    const transactions = { [first]: await connect(), [second]: await connect() };
    const [late, early] = [transactions.late as pg.Client, transactions.early as pg.Client];
    for (const client of Object.values(transactions)) await client.query('begin');
    const names = [`account-late-${randomUUID()}`, `account-early-${randomUUID()}`] as const;
    await appendRaw(late, names[0]); // takes the smaller position without committing
    await appendRaw(early, names[1]);
    await early.query('commit');

    const seen: string[] = [];
    const controller = new AbortController();
    const following = (async () => {
      for await (const { events } of store.subscribe(start, controller.signal)) {
        seen.push(...events.map(({ stream }) => stream));
        if (seen.length >= 2) return;
      }
    })();
    for (let i = 0; i < 12; i++) await looked(); // first polls by transaction ids, then by locks
    expect(seen).toEqual([]);
    await late.query('commit');
    await following;
    expect(seen).toEqual(names);
  });

  test('subscribe does not wait for transactions that append nothing, in this database or another', async () => {
    const { position } = (await store.append(`account-${randomUUID()}`, NO_STREAM, [fact()])) as StreamHead;
    const elsewhere = await connectAs(database.superuserUrl.replace(/[^/]+$/, 'postgres'));
    const reading = await connect();
    opened.push(elsewhere);
    await elsewhere.query('begin; select pg_current_xact_id()');
    await reading.query(`begin; insert into es.checkpoints values ('${randomUUID()}', 0)`);
    const following = store.subscribe(position, new AbortController().signal);
    const next = following.next();
    const appended = (await store.append(`account-${randomUUID()}`, NO_STREAM, [fact()])) as StreamHead;
    expect((await next).value).toMatchObject({ position: appended.position });
    await following.return(undefined);
  });

  test.each(['update es.events set data = $$1$$', 'delete from es.events', 'truncate es.events'])(
    'rejects "%s" from the role of the service and from a superuser',
    async (statement) => {
      await store.append(`account-${randomUUID()}`, NO_STREAM, [fact()]);
      const service = await connect();
      await expect(service.query(statement)).rejects.toThrow(/permission denied|never changed or removed/);
      await expect(superuser.query(statement)).rejects.toThrow(/never changed or removed/);
    },
  );

  test('appends to the other streams of a batch if some are stale', async () => {
    const streams = Array.from({ length: 50 }, (_, i) => `account-${randomUUID()}-${i}`);
    await store.append(streams[7] as string, NO_STREAM, [fact()]);
    const answers = await Promise.all(
      streams.map((stream, i) => store.append(stream, i % 2 ? NO_STREAM : 3, [fact(), fact()])),
    );
    const expected = streams.map((_, i) => (i % 2 && i !== 7 ? { revision: 1 } : 'stale'));
    expect(answers).toMatchObject(expected);
  });

  test('appends to the other streams of a batch if the database rejects one', async () => {
    const streams = Array.from({ length: 5 }, () => `account-${randomUUID()}`);
    const answers = await Promise.allSettled(
      streams.map((stream, i) => store.append(stream, NO_STREAM, [i === 2 ? { ...fact(), id: 'no uuid' } : fact()])),
    );
    expect(answers.map(({ status }) => status).join()).toBe('fulfilled,fulfilled,rejected,fulfilled,fulfilled');
    expect((answers[2] as PromiseRejectedResult).reason).not.toBeInstanceOf(StoreUnavailableError);
  });

  test('does not deadlock if two stores append to the same streams in different orders', async () => {
    const other = new PostgresEventStore({ connectionString: database.url });
    const streams = Array.from({ length: 50 }, () => `account-${randomUUID()}`);
    for (let round = 0; round < 10; round++) {
      const sent = [streams, streams.toReversed()].map((order, i) =>
        Promise.all(order.map((stream) => (i ? other : store).append(stream, 2 * round - 1, [fact(), fact()]))),
      );
      const [mine, theirs] = (await Promise.all(sent)) as [(StreamHead | 'stale')[], (StreamHead | 'stale')[]];
      const won = mine.map((answer, i) => [answer, theirs.at(-1 - i)].filter((each) => each !== 'stale').length);
      expect(won).toEqual(streams.map(() => 1));
    }
    await other.close();
  });

  test('loses no event when connections break, and stores repeated ids once', async () => {
    const stream = `account-${randomUUID()}`;
    const events = Array.from({ length: 60 }, fact);
    let position = ((await store.append(`account-${randomUUID()}`, NO_STREAM, [fact()])) as StreamHead).position;
    const seen: string[] = [];
    const controller = new AbortController();
    const pumped = pump(
      (after, signal) => store.subscribe(after, signal),
      {
        name: 'test',
        loadCheckpoint: async () => position,
        async apply(batch) {
          seen.push(...batch.events.map(({ id }) => id));
          position = batch.position;
          if (seen.length >= events.length) controller.abort();
        },
      },
      controller.signal,
      createTestRuntime({ sleep: async () => {} }),
    );
    for (const [i, event] of events.entries()) {
      const killed =
        i % 10 === 5 &&
        superuser.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
        );
      let head: StreamHead | 'stale' | undefined;
      while (head === undefined) {
        head = await store.append(stream, i - 1, [event]).catch((error) => {
          expect(error).toBeInstanceOf(StoreUnavailableError);
          return undefined;
        });
      }
      expect(head).toMatchObject({ revision: i });
      await killed;
    }
    await pumped;
    expect(seen).toEqual(events.map(({ id }) => id));
    expect((await store.readHead(stream))?.revision).toBe(events.length - 1);
  });

  test('delivers events of another store to a subscriber without waiting for the next poll', async () => {
    const EVENTS = 24;
    // The store never polls by itself.
    const polling = jest.spyOn(globalThis, 'setInterval').mockReturnValue(setTimeout(() => {}));
    const other = new PostgresEventStore({ connectionString: database.url });
    expect(polling).toHaveBeenCalled();
    polling.mockRestore();
    const stream = `account-${randomUUID()}`;
    let position = ((await store.append(stream, NO_STREAM, [fact()])) as StreamHead).position;
    const following = other.subscribe(position, new AbortController().signal);
    for (let revision = 0; revision < EVENTS; revision++) {
      const next = following.next();
      position = ((await store.append(stream, revision, [fact()])) as StreamHead).position;
      expect((await next).value).toMatchObject({ position });
    }
    await following.return(undefined);
    await other.close();
  });

  test('replaces a lost listener', async () => {
    await store.append(`account-${randomUUID()}`, NO_STREAM, [fact()]);
    const following = store.subscribe(START_POSITION, new AbortController().signal);
    await following.next();
    const listener = async (otherThan = 0): Promise<number> => {
      const text = `select pid from pg_stat_activity where datname = current_database() and query like 'listen %' and pid <> $1`;
      const { rows } = await superuser.query(text, [otherThan]);
      return rows[0]?.pid ?? listener(otherThan);
    };
    const lost = await listener();
    await superuser.query('select pg_terminate_backend($1)', [lost]);
    await listener(lost);
    await following.return(undefined);
  });

  test('a lost append is a result and no error, and the other appends of its batch are stored in one transaction', async () => {
    const { position } = (await store.append('account-tail', NO_STREAM, [fact(), fact()])) as StreamHead;
    const client = await connect();
    const [tail, fresh] = [`account-tail`, `account-${randomUUID()}`];
    const stale = fact().id;
    const { rows } = await client.query('select * from es.append_events($1, $2, $3, $4, $5, $6, $7, $8)', [
      WRITE_CONTRACT,
      `${tail}\n${tail}\n${fresh}\naccount-void`,
      '{0,-1,-1,4}',
      '{1,2,0,5}',
      `{${stale},${fact().id},${fact().id},${fact().id}}`,
      'A\nB\nC\nD',
      '{}\n{}\n{}\n{}',
      '{}\n{}\n{}\n{}',
    ]);
    expect(rows).toMatchObject([{ appended: [false, true, false], revisions: ['1', '0', null] }]);
    expect(rows[0].positions[0]).toBe(String(position));
    expect(await store.readHead(tail)).toEqual({ revision: 1, position });
    expect(await store.readHead(fresh)).toEqual({ revision: 0, position: BigInt(rows[0].positions[1]) });
  });

  test('an append under a contract that the database does not accept is rejected at once, and stores nothing', async () => {
    const stream = `account-${randomUUID()}`;
    const older = new PostgresEventStore({ connectionString: database.url, contract: WRITE_CONTRACT - 1 });
    const newer = new PostgresEventStore({ connectionString: database.url, contract: WRITE_CONTRACT + 1 });
    for (const other of [older, newer]) {
      const failure = await other.append(stream, NO_STREAM, [fact()]).catch((error) => error);
      expect(failure).toBeInstanceOf(StoreUnavailableError);
      expect(failure.cause.message).toMatch(/^contract \d is not accepted: the database accepts the contracts 2 to 2$/);
      await other.close();
    }
    expect(await store.readHead(stream)).toBeUndefined();
  });

  /** Makes an append wait for another transaction, so that its connection can break in that time. */
  async function withWaitingAppend(waiting: PostgresEventStore, breakIt: () => Promise<unknown>): Promise<void> {
    const stream = `account-${randomUUID()}`;
    const events = [fact(), fact()];
    const rival = await connect();
    await rival.query('begin');
    await appendRaw(rival, stream);
    const outcome = expect(waiting.append(stream, NO_STREAM, events)).rejects.toThrow(StoreUnavailableError);
    await breakIt();
    await outcome;
    await rival.query('rollback');
    expect(await store.append(stream, NO_STREAM, events)).toMatchObject({ revision: 1 });
  }
  const isWaiting = `datname = current_database() and wait_event_type = 'Lock' and query like '%es.append_events%'`;

  test('throws StoreUnavailableError if the server terminates an append, and stores a retry once', async () => {
    const kill = `select pg_terminate_backend(pid) from pg_stat_activity where ${isWaiting}`;
    await withWaitingAppend(store, async () => {
      while ((await superuser.query(kill)).rowCount === 0);
    });
  });

  test('throws StoreUnavailableError if the connection breaks during an append, and stores a retry once', async () => {
    const cable = new Set<Socket>();
    const proxy = createServer((socket) => {
      const onward = connectTo(Number(new URL(database.url).port), '127.0.0.1');
      for (const end of [socket, onward]) cable.add(end.on('error', () => {}));
      socket.pipe(onward).pipe(socket);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const detour = Object.assign(new URL(database.url), { port: (proxy.address() as AddressInfo).port });
    const distant = new PostgresEventStore({ connectionString: detour.href });
    await withWaitingAppend(distant, async () => {
      while ((await superuser.query(`select from pg_stat_activity where ${isWaiting}`)).rowCount === 0);
      for (const end of cable) end.destroy();
    });
    await distant.close();
    proxy.close();
  });

  test('fails the append, not the process, if the server ends a connection as soon as it is ready', async () => {
    const ready = Buffer.from('Z\0\0\0\x05I', 'latin1');
    const fields = Buffer.from('SFATAL\0C57P01\0Mterminating connection\0\0', 'latin1');
    const length = Buffer.alloc(4);
    length.writeInt32BE(fields.length + length.length);
    const ended = Buffer.concat([Buffer.from('E'), length, fields]);
    const proxy = createServer((socket) => {
      const onward = connectTo(Number(new URL(database.url).port), '127.0.0.1');
      for (const end of [socket, onward]) end.on('error', () => {});
      socket.pipe(onward);
      onward.on('data', (piece) => {
        if (!piece.subarray(-ready.length).equals(ready)) return socket.write(piece);
        socket.end(Buffer.concat([piece, ended])); // in one write, so that nothing can run in between
        return onward.destroy();
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const detour = Object.assign(new URL(database.url), { port: (proxy.address() as AddressInfo).port });
    const unlucky = new PostgresEventStore({ connectionString: detour.href });
    await expect(unlucky.append(`account-${randomUUID()}`, NO_STREAM, [fact()])).rejects.toThrow(StoreUnavailableError);
    await unlucky.close();
    proxy.close();
  });

  test('retries to listen on an unreachable database more than 100 ms later', async () => {
    const away = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => away.listen(0, '127.0.0.1', resolve));
    const { port } = away.address() as AddressInfo;
    const controller = new AbortController();
    const asked: number[] = [];
    await new Promise<void>((resolve) => {
      const lost = new PostgresEventStore({
        connectionString: `postgres://nobody:none@127.0.0.1:${port}/none`,
        onProblem: (problem) => {
          if (!problem.startsWith('not listening') || asked.push(performance.now()) < 3) return;
          controller.abort();
          lost.close().then(resolve, resolve);
        },
      });
      void (async () => {
        for await (const _ of lost.subscribe(START_POSITION, controller.signal));
      })();
    });
    away.close();
    expect((asked[2] as number) - (asked[1] as number)).toBeGreaterThan(100);
  });
});
