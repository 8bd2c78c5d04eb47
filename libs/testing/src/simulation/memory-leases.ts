import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedTime } from './simulated-time.ts';

interface Row {
  token: number;
  endsAtMs: number;
  holder: SimulatedProcess;
}

/** The table of leases of all processes, by the time of its database. */
export class MemoryLeases {
  private readonly rows = new Map<string, Row>();

  constructor(
    private readonly time: SimulatedTime,
    private readonly startMs: number,
  ) {}

  /** Returns the table as a process uses it. */
  open(process: SimulatedProcess) {
    return {
      acquire: async (name: string, durationMs: number, handicapMs: number) => {
        const row = this.rows.get(name);
        const isFree =
          !row || row.endsAtMs <= this.time.nowMs - handicapMs || (handicapMs === 0 && row.holder.hasEnded);
        if (!isFree) return undefined;
        const token = Math.max((row?.token ?? 0) + 1, Math.floor((this.startMs + this.time.nowMs) * 1_000));
        this.rows.set(name, { token, endsAtMs: this.time.nowMs + durationMs, holder: process });
        return token;
      },
      renew: async (name: string, token: number, durationMs: number) => {
        const row = this.rows.get(name);
        if (row?.token !== token) return false;
        row.endsAtMs = this.time.nowMs + durationMs;
        return true;
      },
      release: async (name: string, token: number) => {
        const row = this.rows.get(name);
        if (row?.token === token) row.endsAtMs = this.time.nowMs;
      },
      close: async () => {},
    };
  }
}
