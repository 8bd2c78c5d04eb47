import { MemoryEventStore } from '#eventstore';
import { eventStoreContract } from '#testing';

eventStoreContract('the memory event store', async () => {
  const store = new MemoryEventStore(['account-']);
  return { store, openAnother: () => store, prefix: 'account-', close: () => store.close() };
});
