/** Attempts of a step whose connection is lost. */
const MAX_ATTEMPTS = 4;

/**
 * Repeats a step of the proof, not of a wave, if its connection is lost: a server may close an idle connection at the
 * moment at which a busy proof uses it again. The step must not do harm if it is done twice.
 */
export async function repeatFetch<T>(step: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await step();
    } catch (error) {
      if (attempts === MAX_ATTEMPTS || !(error instanceof TypeError)) throw error;
    }
  }
}
