/** Checks the keys of providers in the background, so that a start does not wait for providers. */
import type { ConnectedProviders } from '#connectors';
import type { Log } from '#foundation';

/** A provider that does not respond within this time neither accepts nor rejects its key. */
const CHECK_TIMEOUT_MS = 10_000;

export class KeyChecks {
  private readonly closeController = new AbortController();
  private running: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly providers: Pick<ConnectedProviders, 'checkKeys'>,
    private readonly log: Pick<Log, 'info'>,
    private readonly timeoutMs = CHECK_TIMEOUT_MS,
  ) {}

  /** Starts to check the keys that were not checked before. */
  start(): void {
    const { signal } = this.closeController;
    const checks = this.providers.checkKeys(
      AbortSignal.any([signal, AbortSignal.timeout(this.timeoutMs)]),
      (provider, err) => {
        if (!signal.aborted) this.log.info({ provider, err }, 'the key of a provider could not be checked; using it');
      },
    );
    this.running = Promise.all([this.running, checks]);
  }

  /** Ends running checks. */
  async close(): Promise<void> {
    this.closeController.abort();
    await this.running;
  }
}
