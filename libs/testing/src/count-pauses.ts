/** Counts how often other work can run before a promise settles: 0 if its work holds the event loop until the end. */
export async function countPauses<T>(work: Promise<T>): Promise<{ readonly result: T; readonly pauses: number }> {
  let pauses = 0;
  const count = () => {
    pauses++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  try {
    const result = await work;
    return { result, pauses };
  } finally {
    clearImmediate(next);
  }
}
