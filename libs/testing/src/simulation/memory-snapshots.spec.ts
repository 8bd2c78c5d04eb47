import { snapshotStoreContract } from '../contracts/snapshot-store.ts';
import { MemorySnapshots } from './memory-snapshots.ts';

snapshotStoreContract('in memory', async () => new MemorySnapshots());
