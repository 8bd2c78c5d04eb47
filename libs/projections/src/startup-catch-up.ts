import { START_POSITION } from '#kernel';
import type { ProjectionPosition, ProjectionProgress } from './progress.ts';

/**
 * A read model that has not moved for so long will not by our waiting for it: longer than a standby takes to take over, and
 * than a projector that is started with this process may come after it.
 */
const STALL_TIMEOUT_MS = 120_000;
/** Without it no customer is told from a stranger. */
const REQUIRED_PROJECTION = 'keys';

/**
 * Whether the read models show everything up to a position: where all ended when this process started. A process that
 * starts beside a projector that is far behind would answer with balances of yesterday, and know no key that was made
 * since. Where the projector stands still, so would all others, and there is nothing to wait for; but where it has never
 * been there is nobody to serve.
 */
export class StartupCatchUp {
  private isComplete = false;
  /** The furthest places so far, and since when. */
  private readonly furthest = new Map<string, { readonly position: ProjectionPosition; readonly at: number }>();

  constructor(
    readonly target: bigint,
    private readonly progress: Pick<ProjectionProgress, 'loadActivePositions'>,
    private readonly projections: readonly string[],
    private readonly stallTimeoutMs = STALL_TIMEOUT_MS,
  ) {}

  /**
   * Where those are that have not come so far, and move or may. Once there were none, there are none for ever.
   */
  async findLagging(): Promise<ReadonlyMap<string, ProjectionPosition>> {
    if (this.isComplete) return new Map();
    const positions = await this.progress.loadActivePositions(this.projections).catch((error) => {
      this.furthest.clear(); // while PostgreSQL does not answer, nothing can move: patience begins again
      throw error;
    });
    const lagging = [...positions].filter(
      (entry) => this.isStillAdvancing(...entry) && entry[1].position < this.target,
    );
    this.isComplete = lagging.length === 0;
    return new Map(lagging);
  }

  private isStillAdvancing(projection: string, current: ProjectionPosition): boolean {
    const last = this.furthest.get(projection);
    if (!last || hasAdvanced(last.position, current)) {
      this.furthest.set(projection, { position: current, at: performance.now() });
      return true;
    }
    const isEmpty = projection === REQUIRED_PROJECTION && current.position === START_POSITION;
    return isEmpty || performance.now() - last.at < this.stallTimeoutMs;
  }
}

/** A rebuild that fails again and again begins again and again: it has moved where it is further than it ever was. */
function hasAdvanced(from: ProjectionPosition, to: ProjectionPosition): boolean {
  return from.position !== to.position || (to.rebuiltTo ?? START_POSITION) > (from.rebuiltTo ?? START_POSITION);
}
