/**
 * Returns the milliseconds of CPU time that this process spends on `work`. Unlike the elapsed time, they do not grow
 * while other processes run or the host is suspended. On a slower machine they do, so limits should be generous.
 */
export async function measureCpuMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
