/** The bill: what the simulated providers would invoice, in integers of pico-USD. */
import { Readable } from 'node:stream';
import { formatUsd, money, type PicoUsd, parseUsd, toPicoUsd } from '#kernel';
import type { Fault } from './provider/directive.ts';
import type { SandboxModel, SandboxPrice } from './provider/model.ts';
import type { Routes } from './router.ts';

/**
 * At least this many of the last lines are retained, at most twice as many. Removed lines stay in the total. A line
 * takes about 400 bytes.
 */
const MIN_RETAINED_LINES = 500_000;
const LINES_PER_PAGE = 1_000;

/** Tokens in classes that do not overlap. Reasoning tokens are part of the output. */
export interface BilledTokens {
  readonly input: number;
  readonly cached_input: number;
  readonly output: number;
  /** Tokens written to a cache for an hour, which costs twice the input. */
  readonly hour_cache_writes?: number;
}

/** Usage of `quantity / per` units, such as 1,500 characters at 1,000 characters per unit. */
export interface BilledUnits {
  readonly unit: string;
  readonly quantity: number;
  readonly per: number;
}

/** `price` is the price of one unit in USD. */
export interface PricedUnits extends BilledUnits {
  readonly price: string;
}

/** Which request a line is for. */
export interface LineOrigin {
  readonly fault: Fault | undefined;
  /** The `id` of the directive in the request. */
  readonly directive?: string | undefined;
}

interface Line extends LineOrigin {
  readonly id: string;
  readonly model: string;
  readonly tokens?: BilledTokens;
  readonly units?: BilledUnits;
  readonly parts?: readonly BilledUnits[];
  readonly cost: PicoUsd;
  readonly at: number;
}

export const NO_TOKENS: BilledTokens = { input: 0, cached_input: 0, output: 0 };

/** Returns the cost of one request and its tokens. https://docs.claude.com/en/docs/build-with-claude/prompt-caching */
export function calculateCost(price: SandboxPrice, tokens: BilledTokens): PicoUsd {
  const { input, cachedInput, output, request } = price;
  return toPicoUsd(
    BigInt(tokens.input) * input +
      BigInt(tokens.hour_cache_writes ?? 0) * 2n * input +
      BigInt(tokens.cached_input) * cachedInput +
      BigInt(tokens.output) * output +
      request,
  );
}

export class SandboxBill {
  private total = 0n;
  private count = 0;
  private lines: Line[] = [];

  /** Charges for one request and its tokens. */
  charge(id: string, model: Pick<SandboxModel, 'id' | 'price'>, tokens: BilledTokens, origin: LineOrigin): void {
    this.add({ id, model: model.id, tokens, cost: calculateCost(model.price, tokens), at: Date.now(), ...origin });
  }

  /** Charges for units. The cost is rounded up to an integer of pico-USD. */
  chargeUnits(id: string, model: string, { price, ...units }: PricedUnits, fault: Fault | undefined): void {
    const cost = money.divideRoundingUp(BigInt(units.quantity) * parseUsd(price), BigInt(units.per));
    this.add({ id, model, units, cost: toPicoUsd(cost), at: Date.now(), fault });
  }

  /**
   * Charges for several kinds of units, such as classes of tokens, in one line. The cost of each kind is rounded up to
   * an integer of pico-USD.
   */
  chargeParts(id: string, model: string, priced: readonly PricedUnits[], fault: Fault | undefined): void {
    const cost = priced.reduce((sum, { price, quantity, per }) => {
      return sum + money.divideRoundingUp(BigInt(quantity) * parseUsd(price), BigInt(per));
    }, 0n);
    const parts = priced.map(({ price: _, ...units }) => units);
    this.add({ id, model, parts, cost: toPicoUsd(cost), at: Date.now(), fault });
  }

  getSummary() {
    return { total_usd: formatUsd(toPicoUsd(this.total)), lines: this.count };
  }

  /** Yields the retained lines, oldest first, as chunks of one JSON array. */
  *streamPages(): Generator<string> {
    const lines = this.lines.slice();
    for (let start = 0; start < lines.length; start += LINES_PER_PAGE) {
      const page = lines.slice(start, start + LINES_PER_PAGE).map((line) => JSON.stringify(toLineJson(line)));
      yield (start === 0 ? '[' : ',') + page.join(',');
    }
    yield lines.length === 0 ? '[]' : ']';
  }

  clear(): void {
    this.total = 0n;
    this.count = 0;
    this.lines = [];
  }

  private add(line: Line): void {
    this.total += line.cost;
    this.count += 1;
    this.lines.push(line);
    if (this.lines.length >= 2 * MIN_RETAINED_LINES) this.lines = this.lines.slice(-MIN_RETAINED_LINES);
  }
}

function toLineJson({ cost, at, fault, ...line }: Line) {
  return { ...line, usd: formatUsd(cost), at: new Date(at).toISOString(), ...(fault ? { fault } : {}) };
}

export function billRoutes(bill: SandboxBill): Routes {
  return {
    'GET /bill': (call) => call.sendJson(200, bill.getSummary()),
    'GET /bill/lines': ({ response }) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      Readable.from(bill.streamPages()).pipe(response);
    },
    'DELETE /bill': (call) => {
      bill.clear();
      call.sendJson(200, bill.getSummary());
    },
  };
}
