import { START_POSITION } from '#kernel';
import type { ProjectionPosition, ProjectionProgress } from './progress.ts';

/**
 * A read model that has not advanced for this long is no longer waited for. A standby projector takes over sooner, and
 * a projector of the same deployment starts sooner.
 */
const STALL_TIMEOUT_MS = 120_000;
/** Without this read model no API key is known, so no customer can be served. */
const REQUIRED_PROJECTION = 'keys';

/**
 * Determines when the read models include every event up to `target`, the last position at the start of this process. A
 * process that serves earlier would return outdated balances and reject recent API keys. A read model that is blocked
 * or has stopped advancing is not waited for, because other processes would be no better off. Only an empty table of
 * keys, unless it is blocked, is waited for without limit.
 */
export class StartupCatchUp {
  private isComplete = false;
  /** The furthest position of each projection, and when it was first observed. */
  private readonly furthest = new Map<string, { readonly position: ProjectionPosition; readonly at: number }>();

  constructor(
    readonly target: bigint,
    private readonly progress: Pick<ProjectionProgress, 'loadActivePositions'>,
    private readonly projections: readonly string[],
    private readonly stallTimeoutMs = STALL_TIMEOUT_MS,
  ) {}

  /**
   * Returns the positions of the projections that have not reached the target but may still advance. Once the result
   * was empty, it stays empty.
   */
  async findLagging(): Promise<ReadonlyMap<string, ProjectionPosition>> {
    if (this.isComplete) return new Map();
    const positions = await this.progress.loadActivePositions(this.projections).catch((error) => {
      this.furthest.clear(); // nothing advances while PostgreSQL is unavailable, so the stall timeouts restart
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

/** A rebuild that fails repeatedly restarts each time, so it has only advanced if it is further than ever before. */
function hasAdvanced(from: ProjectionPosition, to: ProjectionPosition): boolean {
  return from.position !== to.position || (to.rebuiltTo ?? START_POSITION) > (from.rebuiltTo ?? START_POSITION);
}
