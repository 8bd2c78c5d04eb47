/** The statuses of responses to the bodies of worst-bodies.ts. They show whether the bodies reach the work of their routes. */
import type { WorstBody } from './worst-bodies.ts';

/** A body with such a status was not read, or was rejected before its route used it. */
const UNREAD: ReadonlySet<number> = new Set([401, 404, 405, 413, 415]);
/** Messages for bodies whose model, fields or values are invalid. */
const INVALID_BODY = /does not exist|does not use|but not |not supported|is required| must be an? /;
/** Only the sender of a webhook can sign it. An attacker reaches the check of the signature. */
const UNSIGNED = /\/webhooks\//;

export class BodyStatuses {
  private readonly counts = new Map<string, Map<number, number>>();
  private readonly rejected: string[] = [];

  /** @param text the body of the response */
  add({ path, name }: WorstBody, status: number, text: string): void {
    const ofRoute = this.counts.get(path) ?? new Map<number, number>();
    this.counts.set(path, ofRoute.set(status, (ofRoute.get(status) ?? 0) + 1));
    const isInvalid = UNREAD.has(status) || (status === 400 && INVALID_BODY.test(text));
    if (isInvalid && !UNSIGNED.test(path)) this.rejected.push(`${name}: ${status} ${text.slice(0, 200)}`);
  }

  /** The bodies that their routes rejected before they used them, each with the response. */
  get invalidBodies(): readonly string[] {
    return this.rejected;
  }

  /** Returns the statuses by route. */
  toString(): string {
    const format = (ofRoute: ReadonlyMap<number, number>) =>
      [...ofRoute].map(([status, count]) => `${count} × ${status}`).join(' ');
    return [...this.counts].map(([path, ofRoute]) => `${path}: ${format(ofRoute)}`).join(', ');
  }
}
