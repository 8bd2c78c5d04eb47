import { checkpointStoreContract } from '../contracts/checkpoint-store.ts';
import { MemoryCheckpoints } from './memory-checkpoints.ts';

checkpointStoreContract('in memory', async () => new MemoryCheckpoints());
