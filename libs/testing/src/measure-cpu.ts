/**
 * Returns the milliseconds of CPU time that all threads of this process spend during `work`. Unlike the elapsed time,
 * they do not grow while other processes run or the host is suspended. On a slower machine they do, so limits should be
 * generous.
 */
export function measureCpuMs(work: () => unknown): Promise<number> {
  return measure(work, process.cpuUsage);
}

/**
 * Returns the milliseconds of CPU time that this thread spends during `work`: without the garbage collector's threads,
 * and without worker threads that are busy with something else.
 */
export function measureThreadCpuMs(work: () => unknown): Promise<number> {
  return measure(work, process.threadCpuUsage);
}

async function measure(work: () => unknown, getUsage: typeof process.threadCpuUsage): Promise<number> {
  const before = getUsage();
  await work();
  const { user, system } = getUsage(before);
  return (user + system) / 1_000;
}
