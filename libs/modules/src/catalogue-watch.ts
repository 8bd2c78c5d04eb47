import type { CatalogueService } from '#application';
import { type Catalogue, readCatalogueStamp } from '#catalogue';
import type { Log } from '#foundation';
import { RetirementReporter } from './retirement-reporter.ts';

const POLL_INTERVAL_MS = 2_000;

export interface CatalogueSource {
  readonly directory: string;
  /** Reads and validates the files of the catalogue. @throws Error that names the invalid file and field */
  read(): Catalogue;
}

/**
 * Applies changed catalogue files while the service is running. The files are polled, because file system notifications
 * are lost over networks and in containers. An invalid file changes nothing and is reported once. Each poll also checks
 * whether the retirements of a new day must be reported.
 */
export class CatalogueWatch {
  private readonly timer: NodeJS.Timeout;
  private stamp: string;
  /** Stamp of invalid files that were already reported. */
  private invalidStamp: string | undefined;
  private currentPoll: Promise<void> = Promise.resolve();
  private readonly retirements: RetirementReporter;

  constructor(
    private readonly source: CatalogueSource,
    private readonly catalogues: CatalogueService,
    private readonly log: Log,
  ) {
    this.stamp = readCatalogueStamp(source.directory);
    this.retirements = new RetirementReporter(catalogues, log);
    this.retirements.report();
    this.timer = setInterval(() => void this.poll(), POLL_INTERVAL_MS).unref();
  }

  /** Polls run one after the other. */
  poll(): Promise<void> {
    this.currentPoll = this.currentPoll.then(() => this.reloadIfChanged()).then(() => this.retirements.report());
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
      this.invalidStamp = undefined; // from here on only the store can fail, so the next poll retries
      await this.catalogues.replace(next);
      this.stamp = stamp;
      this.log.info({ priceList: next.priceList.version, models: next.models.length }, 'the catalogue was replaced');
    } catch (error) {
      this.log.error({ err: error }, 'the changed catalogue could not be applied; the previous one stays in use');
    }
  }
}
