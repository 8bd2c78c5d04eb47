import { expect, test } from '@jest/globals';
import { UpstreamError } from '#application';
import { KeyChecks } from './key-checks.ts';

const FAILURE = new UpstreamError('timeout', 'The provider took too long to respond');

/** Provider calls that do not end before they are aborted. */
function createEndlessChecks() {
  const [started, reported] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const lines: unknown[] = [];
  const checkKeys = async (signal: AbortSignal, onUnknown: (upstream: string, error: Error) => void) => {
    started.resolve();
    await new Promise((aborted) => signal.addEventListener('abort', aborted));
    onUnknown('openai', FAILURE);
  };
  const log = {
    info: (...line: unknown[]) => {
      lines.push(line);
      reported.resolve();
    },
  };
  return { providers: { checkKeys }, log: log as never, lines, started: started.promise, reported: reported.promise };
}

test('a check that takes too long is aborted, and the provider is named', async () => {
  const { providers, log, lines, reported } = createEndlessChecks();
  const checks = new KeyChecks(providers, log, 1);

  checks.start();
  await reported;

  expect(lines).toEqual([
    [{ provider: 'openai', err: FAILURE }, 'the key of a provider could not be checked; using it'],
  ]);
  await checks.close();
});

test('closing aborts running checks, waits for them, and reports nothing', async () => {
  const { providers, log, lines, started } = createEndlessChecks();
  const checks = new KeyChecks(providers, log);
  checks.start();
  await started;

  await checks.close();

  expect(lines).toEqual([]);
});
