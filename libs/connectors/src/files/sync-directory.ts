import { open } from 'node:fs/promises';

/** Makes new names in a directory durable: each survives a power failure only after this. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
