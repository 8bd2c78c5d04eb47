import type { CatalogueService } from '#application';
import { type Catalogue, readCatalogueStamp } from '#catalogue';
import type { Log } from '#foundation';

const POLL_INTERVAL_MS = 2_000;

/** Where a catalogue's files are, and how they are read and checked. */
export interface CatalogueSource {
  readonly directory: string;
  /** @throws Error that says what cannot be used */
  read(): Catalogue;
}

/**
 * Takes changed catalogue files into force while the service runs. Files are looked at now and then: notifications of
 * file systems are lost over networks and in containers. A file with a mistake changes nothing and is reported once.
 */
export class CatalogueWatch {
  private readonly timer: NodeJS.Timeout;
  private stamp: string;
  /** That of files which cannot be used, and were complained about. */
  private invalidStamp: string | undefined;
  private currentPoll: Promise<void> = Promise.resolve();

  constructor(
    private readonly source: CatalogueSource,
    private readonly catalogues: CatalogueService,
    private readonly log: Log,
  ) {
    this.stamp = readCatalogueStamp(source.directory);
    this.timer = setInterval(() => void this.poll(), POLL_INTERVAL_MS).unref();
  }

  /** One look at a time. */
  poll(): Promise<void> {
    this.currentPoll = this.currentPoll.then(() => this.reloadIfChanged());
    return this.currentPoll;
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.currentPoll;
  }

  private async reloadIfChanged(): Promise<void> {
    try {
      const stamp = readCatalogueStamp(this.source.directory);
      if (stamp === this.stamp || stamp === this.invalidStamp) return;
      this.invalidStamp = stamp;
      const next = this.source.read();
      this.invalidStamp = undefined; // from here on only the store can fail, and that is worth another try
      await this.catalogues.replace(next);
      this.stamp = stamp;
      this.log.info({ priceList: next.priceList.version, models: next.models.length }, 'the catalogue was replaced');
    } catch (error) {
      this.log.error({ err: error }, 'the changed catalogue cannot be used; the one before stays in force');
    }
  }
}
