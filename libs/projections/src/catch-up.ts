import type { Progress } from './progress.ts';

/** A read model that has not moved for so long will not by our waiting for it. Longer than a standby takes to take over. */
const PATIENCE_MS = 30_000;

/**
 * Whether the read models show everything up to a position: where all ended when this process started. A process that
 * starts beside a projector that is far behind would answer with balances of yesterday. Where the projector stands still, so
 * would all others, and there is nothing to wait for.
 */
export class CatchUp {
  private isOver = false;
  private readonly seen = new Map<string, { readonly position: bigint; readonly at: number }>();

  constructor(
    private readonly target: bigint,
    private readonly progress: Pick<Progress, 'moving'>,
    private readonly projections: readonly string[],
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  /** True once each has come so far, or does not move any more; from then on always. */
  async over(): Promise<boolean> {
    if (this.isOver) return true;
    const positions = await this.progress.moving(this.projections);
    const behind = [...positions].filter((each) => this.moves(...each) && each[1] < this.target);
    this.isOver = behind.length === 0;
    return this.isOver;
  }

  private moves(projection: string, position: bigint): boolean {
    const last = this.seen.get(projection);
    if (last?.position === position) return performance.now() - last.at < this.patienceMs;
    this.seen.set(projection, { position, at: performance.now() });
    return true;
  }
}
