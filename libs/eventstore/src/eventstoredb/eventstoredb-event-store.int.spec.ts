import { randomUUID } from 'node:crypto';
import { EventStoreDbEventStore } from '#eventstore';
import { eventStoreContract, FakeEventStoreDb, type OpenedStore } from '#testing';

function open(connectionString: string, stop: () => void): OpenedStore {
  const prefix = `account-${randomUUID()}-`;
  const another = () => new EventStoreDbEventStore({ connectionString, streamPrefixes: ['none-', prefix] });
  const store = another();
  const close = async () => {
    await store.close();
    stop();
  };
  return { store, openAnother: another, prefix, close };
}

eventStoreContract('the EventStoreDB event store', async () => {
  const double = await FakeEventStoreDb.start();
  return open(double.connectionString, () => double.stop());
});

const realServer = process.env.EVENTSTORE_TEST_URL;
if (realServer)
  eventStoreContract('the EventStoreDB event store on a real server', async () => open(realServer, () => {}));
