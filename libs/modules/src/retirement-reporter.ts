import type { CatalogueService } from '#application';
import { listEnds } from '#catalogue';
import type { Log } from '#foundation';

/** Logs once per UTC day which available models and endpoints end within 30 days or have ended. */
export class RetirementReporter {
  private reportedDay: string | undefined;

  constructor(
    private readonly catalogues: Pick<CatalogueService, 'current'>,
    private readonly log: Log,
  ) {}

  /** Does nothing if the ends of this day were already logged. */
  report(): void {
    const { current } = this.catalogues;
    const { day } = current;
    if (day === undefined || day === this.reportedDay) return;
    this.reportedDay = day;
    const ends = listEnds(current, day);
    if (ends.length === 0) return;
    const select = (hasEnded: boolean) =>
      ends.filter(({ isOver }) => isOver === hasEnded).map(({ isOver, ...end }) => end);
    this.log.warn(
      { retiring: select(false), retired: select(true) },
      'models of the catalogue retire within 30 days or have retired',
    );
  }
}
